/* libnvidia-ml.so.1 without a GPU: as far as TensorFlow and PyTorch ask for it. It describes the
   devices of the simulated driver. Numbers and layouts are those of the public header. */

#include <stdio.h>
#include <stdlib.h>

#include "device.h"

#define API EXPORTED int

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, ABSENT = 6, TOO_SMALL = 7 };

struct fabric {
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

static char handles[MOST_DEVICES]; /* a device's handle is the address of its place */

static unsigned devices(void)
{
    const char *text = getenv("DLPROF_SIMULATED_DEVICES");
    unsigned long count = text && *text ? strtoul(text, NULL, 10) : 1;
    return count < MOST_DEVICES ? (unsigned)count : MOST_DEVICES;
}

static unsigned index_of(const char *device) { return (unsigned)(device - handles); }

static int text(char *target, unsigned room, const char *words)
{
    return snprintf(target, room, "%s", words) < (int)room ? OK : TOO_SMALL;
}

API nvmlInit_v2(void) { return OK; }
API nvmlShutdown(void) { return OK; }

EXPORTED const char *nvmlErrorString(int result)
{
    return result == OK ? "Success" : result == UNSUPPORTED ? "Not Supported" : "Not Found";
}

API nvmlSystemGetDriverVersion(char *version, unsigned room) { return text(version, room, "580.00"); }
API nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 13000, OK; }
API nvmlDeviceGetCount_v2(unsigned *count) { return *count = devices(), OK; }

API nvmlDeviceGetHandleByIndex_v2(unsigned index, char **device)
{
    return *device = handles + index, index < devices() ? OK : INVALID;
}

API nvmlDeviceGetHandleByPciBusId_v2(const char *id, char **device)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > devices()) {
        return ABSENT;
    }
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

API nvmlDeviceGetIndex(const char *device, unsigned *index) { return *index = index_of(device), OK; }

API nvmlDeviceGetName(const char *device, char *name, unsigned room)
{
    return text(name, room, "dlprof simulated device");
}

/* The bytes that cuDeviceGetUuid gives. */
API nvmlDeviceGetUUID(const char *device, char *uuid, unsigned room)
{
    char words[64];
    snprintf(words, sizeof words, "GPU-646c7072-6f66-2d73-696d-756c617465%02x", index_of(device));
    return text(uuid, room, words);
}

API nvmlDeviceGetCurrPcieLinkGeneration(const char *device, unsigned *value) { return *value = 4, OK; }
API nvmlDeviceGetCurrPcieLinkWidth(const char *device, unsigned *value) { return *value = 16, OK; }

/* nvmlGpuFabricInfo_v2_t. JAX 0.6.0 aborts unless this succeeds; 0 is "no fabric". */
API nvmlDeviceGetGpuFabricInfoV(const char *device, struct fabric *told)
{
    *told = (struct fabric){.version = told->version, .status = UNSUPPORTED};
    return OK;
}

#define UNKNOWN_HERE(name) API name(void) { return UNSUPPORTED; }
UNKNOWN_HERE(nvmlDeviceGetComputeRunningProcesses)
UNKNOWN_HERE(nvmlDeviceGetNvLinkState)
UNKNOWN_HERE(nvmlDeviceGetNvLinkRemotePciInfo_v2)
UNKNOWN_HERE(nvmlDeviceGetNvLinkRemoteDeviceType)
