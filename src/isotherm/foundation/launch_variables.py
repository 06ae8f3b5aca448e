"""Environment variables by which `isotherm launch`, or a job of yours, tells each process its place."""

COORDINATOR = "ISOTHERM_COORDINATOR"
NUM_PROCESSES = "ISOTHERM_NUM_PROCESSES"
PROCESS_ID = "ISOTHERM_PROCESS_ID"
# JAX reads this one too.
LOCAL_DEVICES = "JAX_LOCAL_DEVICE_IDS"
