"""What everything else stands on: errors, random numbers, schedules, and parts as pytrees."""
