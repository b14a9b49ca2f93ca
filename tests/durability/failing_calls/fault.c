/* Makes the n-th call of a system function on a store's files fail: loaded with LD_PRELOAD.
 *
 * FAULT_DIRECTORY   only files below it count
 * FAULT_CALL        the function: one of those below
 * FAULT_AT          the first call that fails, from 1; 0: none
 * FAULT_LASTS       set: all later ones fail too
 * FAULT_HOW         EIO, ENOSPC; short (half of the bytes are written); kill (the process ends before the call)
 * FAULT_COUNT       a file that gets the number of calls when the process ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static const char *setting(const char *name) {
    const char *value = getenv(name);
    return value ? value : "";
}

static int is_below(const char *path) {
    const char *directory = setting("FAULT_DIRECTORY");
    return *directory && strncmp(path, directory, strlen(directory)) == 0;
}

static int is_of_store(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return is_below(path);
}

/* Whether this call is to fail. */
static int fails(const char *call) {
    if (strcmp(call, setting("FAULT_CALL")) != 0)
        return 0;
    long number = atomic_fetch_add(&calls, 1) + 1, at = atol(setting("FAULT_AT"));
    if (at == 0 || number < at || (number > at && !*setting("FAULT_LASTS")))
        return 0;
    const char *how = setting("FAULT_HOW");
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    errno = strcmp(how, "ENOSPC") == 0 ? ENOSPC : EIO;
    return 1;
}

static int is_short(void) { return strcmp(setting("FAULT_HOW"), "short") == 0; }

#define REAL(name, ...) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

int fdatasync(int fd) { return is_of_store(fd) && fails("fdatasync") ? -1 : REAL(fdatasync, fd); }

int fsync(int fd) { return is_of_store(fd) && fails("fsync") ? -1 : REAL(fsync, fd); }

int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned int flags) {
    return is_of_store(fd) && fails("sync_file_range") ? -1 : REAL(sync_file_range, fd, offset, bytes, flags);
}

int ftruncate64(int fd, off64_t length) {
    return is_of_store(fd) && fails("ftruncate") ? -1 : REAL(ftruncate64, fd, length);
}

int rename(const char *from, const char *to) {
    char path[4096];
    const char *whole = realpath(from, path);
    return whole && is_below(whole) && fails("rename") ? -1 : REAL(rename, from, to);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    if (is_of_store(fd) && fails("pwrite")) {
        if (!is_short() || length < 2)
            return -1;
        length /= 2;
    }
    return REAL(pwrite64, fd, bytes, length, offset);
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (is_of_store(fd) && fails("write")) {
        if (!is_short() || length < 2)
            return -1;
        length /= 2;
    }
    return REAL(write, fd, bytes, length);
}

__attribute__((destructor)) static void tell(void) {
    const char *name = setting("FAULT_COUNT");
    FILE *file = *name ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", atomic_load(&calls));
        fclose(file);
    }
}
