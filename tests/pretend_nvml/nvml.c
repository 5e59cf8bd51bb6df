/* What tests need of NVIDIA's management library. A file `devices` beside it says what there is: a
 * line a GPU, `UUID MEMORY_USED MEMORY_TOTAL UTILIZATION`; a line that begins with a dash is a MIG
 * device of the GPU above it, `- UUID PROFILE`. The line `hang` makes the driver never answer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6 };
struct device { char uuid[96]; char profile[32]; int parent; unsigned long long used, total; unsigned busy; };
struct memory { unsigned long long total, free, used; };
struct utilization { unsigned gpu, memory; };

static struct device devices[64];
static int count;

static int read_devices(void) {
    Dl_info self;
    char path[4096], line[256];
    int gpu = -1;
    count = 0;
    dladdr((void *)read_devices, &self);
    snprintf(path, sizeof path, "%s", self.dli_fname);
    strcpy(strrchr(path, '/') + 1, "devices");
    FILE *file = fopen(path, "r");
    if (!file) return 9; /* driver not loaded */
    while (count < 64 && fgets(line, sizeof line, file)) {
        struct device *d = &devices[count];
        memset(d, 0, sizeof *d);
        if (!strncmp(line, "hang", 4)) for (;;) pause();
        if (sscanf(line, "- %95s %31s", d->uuid, d->profile) == 2) d->parent = gpu;
        else if (sscanf(line, "%95s %llu %llu %u", d->uuid, &d->used, &d->total, &d->busy) == 4) {
            d->parent = -1;
            gpu = count;
        } else continue;
        count++;
    }
    fclose(file);
    return OK;
}

static struct device *child(struct device *gpu, unsigned index) {
    for (int i = 0; i < count; i++)
        if (devices[i].parent == gpu - devices && index-- == 0) return &devices[i];
    return NULL;
}

int nvmlInit_v2(void) { return read_devices(); }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return read_devices(); }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { (void)code; return "pretended error"; }

int nvmlDeviceGetCount_v2(unsigned *n) {
    *n = 0;
    for (int i = 0; i < count; i++) *n += devices[i].parent < 0;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **found) {
    for (int i = 0; i < count; i++)
        if (devices[i].parent < 0 && index-- == 0) return *found = &devices[i], OK;
    return INVALID;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, struct device **found) {
    for (int i = 0; i < count; i++)
        if (!strcmp(devices[i].uuid, uuid)) return *found = &devices[i], OK;
    return NOT_FOUND;
}
int nvmlDeviceGetUUID(struct device *d, char *text, unsigned size) {
    return snprintf(text, size, "%s", d->uuid), OK;
}
int nvmlDeviceGetName(struct device *d, char *text, unsigned size) {
    return snprintf(text, size, "NVIDIA Pretended%s%s", *d->profile ? " MIG " : "", d->profile), OK;
}
int nvmlDeviceGetMigMode(struct device *d, unsigned *current, unsigned *pending) {
    return *current = *pending = child(d, 0) != NULL, OK;
}
int nvmlDeviceGetMaxMigDeviceCount(struct device *d, unsigned *n) { (void)d; return *n = 7, OK; }
int nvmlDeviceGetMigDeviceHandleByIndex(struct device *d, unsigned index, struct device **found) {
    return (*found = child(d, index)) ? OK : NOT_FOUND;
}
int nvmlDeviceGetMemoryInfo(struct device *d, struct memory *memory) {
    *memory = (struct memory){d->total, d->total - d->used, d->used};
    return OK;
}
int nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *rates) {
    if (d->parent >= 0) return NOT_SUPPORTED;
    return *rates = (struct utilization){d->busy, d->busy}, OK;
}
int nvmlDeviceGetComputeRunningProcesses_v3(struct device *d, unsigned *n, void *processes) {
    (void)d; (void)processes;
    return *n = 0, NOT_SUPPORTED; /* readers fall back to the whole device */
}
