/* libnvidia-ml.so.1 without a GPU: as far as frameworks ask for it. It describes the devices of the
   simulated driver. What it does not know (clocks, links, processes) it calls not supported. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define API __attribute__((visibility("default"))) int

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, ABSENT = 6, TOO_SMALL = 7 };

/* The numbers and layouts of the public header. A handle is the address of a device's number. */
static char numbers[MOST_DEVICES];

static unsigned long long asked(const char *name, unsigned long long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static unsigned devices(void)
{
    unsigned long long count = asked("DLPROF_SIMULATED_DEVICES", 1);
    return count < MOST_DEVICES ? (unsigned)count : MOST_DEVICES;
}

static unsigned index_of(const char *device) { return (unsigned)(device - numbers); }

static int text(char *target, unsigned room, const char *words)
{
    return snprintf(target, room, "%s", words) < (int)room ? OK : TOO_SMALL;
}

API nvmlInit_v2(void) { return OK; }
API nvmlInit(void) { return OK; }
API nvmlInitWithFlags(unsigned flags) { return OK; }
API nvmlShutdown(void) { return OK; }

__attribute__((visibility("default"))) const char *nvmlErrorString(int result)
{
    return result == OK ? "Success" : result == UNSUPPORTED ? "Not Supported" : "Not Found";
}

API nvmlSystemGetDriverVersion(char *version, unsigned room) { return text(version, room, "580.00"); }
API nvmlSystemGetNVMLVersion(char *version, unsigned room) { return text(version, room, "13.580.00"); }
API nvmlSystemGetCudaDriverVersion(int *version) { return *version = 13000, OK; }
API nvmlSystemGetCudaDriverVersion_v2(int *version) { return *version = 13000, OK; }
API nvmlDeviceGetCount_v2(unsigned *count) { return *count = devices(), OK; }
API nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

API nvmlDeviceGetHandleByIndex_v2(unsigned index, char **device)
{
    *device = numbers + index;
    return index < devices() ? OK : INVALID;
}

API nvmlDeviceGetHandleByIndex(unsigned index, char **device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

API nvmlDeviceGetHandleByPciBusId_v2(const char *id, char **device)
{
    unsigned domain, bus;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2 || bus < 1 || bus > devices()) {
        return ABSENT;
    }
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

API nvmlDeviceGetHandleByPciBusId(const char *id, char **device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

API nvmlDeviceGetIndex(const char *device, unsigned *index) { return *index = index_of(device), OK; }

API nvmlDeviceGetName(const char *device, char *name, unsigned room)
{
    return text(name, room, "dlprof simulated device");
}

/* The bytes that cuDeviceGetUuid gives. */
API nvmlDeviceGetUUID(const char *device, char *uuid, unsigned room)
{
    const unsigned char *bytes = (const unsigned char *)"dlprof-simulate";
    char words[64], *at = words + sprintf(words, "GPU-");
    for (unsigned i = 0; i < 16; i++) {
        at += sprintf(at, "%s%02x", i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "",
                      i < 15 ? bytes[i] : index_of(device));
    }
    return text(uuid, room, words);
}

struct pci {
    char old_id[16];
    unsigned domain, bus, device, pci_id, subsystem;
    char id[32];
};

API nvmlDeviceGetPciInfo_v3(const char *device, struct pci *pci)
{
    memset(pci, 0, sizeof *pci);
    pci->bus = index_of(device) + 1;
    snprintf(pci->old_id, sizeof pci->old_id, "0000:%02X:00.0", pci->bus);
    snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", pci->bus);
    return OK;
}

/* Total, free, used. What other processes use is not known here. */
API nvmlDeviceGetMemoryInfo(const char *device, unsigned long long memory[3])
{
    memory[0] = memory[1] = asked("DLPROF_SIMULATED_MEMORY", 8ull << 30);
    memory[2] = 0;
    return OK;
}

API nvmlDeviceGetCudaComputeCapability(const char *device, int *major, int *minor)
{
    *major = 9, *minor = 0;
    return OK;
}

static int pcie(const char *device, unsigned *value, unsigned given)
{
    *value = given;
    return OK;
}

API nvmlDeviceGetMaxPcieLinkGeneration(const char *device, unsigned *value) { return pcie(device, value, 4); }
API nvmlDeviceGetCurrPcieLinkGeneration(const char *device, unsigned *value) { return pcie(device, value, 4); }
API nvmlDeviceGetMaxPcieLinkWidth(const char *device, unsigned *value) { return pcie(device, value, 16); }
API nvmlDeviceGetCurrPcieLinkWidth(const char *device, unsigned *value) { return pcie(device, value, 16); }

#define NOT_KNOWN_HERE(each)                                                                       \
    each(nvmlDeviceGetComputeRunningProcesses) each(nvmlDeviceGetComputeRunningProcesses_v3)       \
    each(nvmlDeviceGetGpuFabricInfo) each(nvmlDeviceGetGpuFabricInfoV) each(nvmlDeviceGetNvLinkState) \
    each(nvmlDeviceGetNvLinkCapability) each(nvmlDeviceGetNvLinkRemotePciInfo_v2)                  \
    each(nvmlDeviceGetNvLinkRemoteDeviceType) each(nvmlDeviceGetP2PStatus)                         \
    each(nvmlDeviceGetFieldValues)                         \
                       \
     each(nvmlDeviceGetClockInfo)                              \
    each(nvmlDeviceGetPowerUsage) each(nvmlDeviceGetTemperature)                                   \
    each(nvmlDeviceGetMemoryInfo_v2) each(nvmlDeviceGetCurrentClocksThrottleReasons)               \
    each(nvmlDeviceGetUtilizationRates) each(nvmlDeviceGetMigMode)
#define REFUSES(name) API name(void) { return UNSUPPORTED; }
NOT_KNOWN_HERE(REFUSES)
