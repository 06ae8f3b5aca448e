"""What the thesis' experiments with images share: settings, methods, cells that can be stopped and resumed, and their judging.

A *cell* is one method with one seed at one setting. It runs in a folder of its own and leaves one small `cell.json`; tables are
made from these.
"""
