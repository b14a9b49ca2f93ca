/* Makes the n-th call of a system function on a store's files fail: loaded with LD_PRELOAD.
 *
 * FAULT_DIRECTORY   only files below it count
 * FAULT_CALL        the function: one of those below
 * FAULT_AT          the first call that fails, from 1; 0: none
 * FAULT_LASTS       set: all later ones fail too
 * FAULT_HOW         EIO, ENOSPC; short (half of the bytes are written); kill (the process ends before the call)
 * FAULT_COUNTS      a file that gets the number of calls of each function when the process ends
 * FAULT_SYNCED      a file that gets the path of each file that fsync or fdatasync is called with
 * FAULT_UNSYNCED    a file that gets the most bytes that sled's log got between two of its syncs
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

static const char *const names[] = {"fdatasync", "fsync", "ftruncate", "pwrite", "rename", "sync_file_range", "write"};
enum { NAMES = sizeof names / sizeof *names };

static atomic_long calls[NAMES], unsynced, most_unsynced;

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

/* Whether it is sled's log. */
static int is_log(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return is_below(path) && length > 3 && strcmp(path + length - 3, "/db") == 0;
}

/* sled fills free segments with zeros when it opens: nothing refers to them. */
static int is_zeros(const char *bytes, size_t length) {
    return length == 0 || (*bytes == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

static void note_written(ssize_t bytes) {
    long now = atomic_fetch_add(&unsynced, bytes) + bytes, most = atomic_load(&most_unsynced);
    while (now > most && !atomic_compare_exchange_weak(&most_unsynced, &most, now)) {
    }
}

/* Whether this call is to fail. */
static int fails(const char *call) {
    int name = 0;
    while (strcmp(call, names[name]) != 0)
        name++;
    long number = atomic_fetch_add(&calls[name], 1) + 1, at = atol(setting("FAULT_AT"));
    if (strcmp(call, setting("FAULT_CALL")) != 0)
        return 0;
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

static void note_synced(int fd) {
    char link[64], path[4096];
    FILE *synced = *setting("FAULT_SYNCED") ? fopen(setting("FAULT_SYNCED"), "a") : NULL;
    if (!synced)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    fprintf(synced, "%.*s\n", length < 0 ? 0 : (int)length, path);
    fclose(synced);
}

int fdatasync(int fd) {
    note_synced(fd);
    if (is_of_store(fd) && fails("fdatasync"))
        return -1;
    long begun = is_log(fd) ? atomic_load(&unsynced) : 0;
    int result = REAL(fdatasync, fd);
    if (result == 0)
        atomic_fetch_sub(&unsynced, begun);
    return result;
}

int fsync(int fd) {
    note_synced(fd);
    return is_of_store(fd) && fails("fsync") ? -1 : REAL(fsync, fd);
}

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
    ssize_t written = REAL(pwrite64, fd, bytes, length, offset);
    if (written > 0 && is_log(fd) && !is_zeros(bytes, length))
        note_written(written);
    return written;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    if (is_of_store(fd) && fails("write")) {
        if (!is_short() || length < 2)
            return -1;
        length /= 2;
    }
    return REAL(write, fd, bytes, length);
}

static void tell(const char *name, long number) {
    FILE *file = *name ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%ld", number);
        fclose(file);
    }
}

static void tell_counts(const char *path) {
    FILE *file = *path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    for (int name = 0; name < NAMES; name++)
        fprintf(file, "%s %ld\n", names[name], atomic_load(&calls[name]));
    fclose(file);
}

__attribute__((destructor)) static void tell_all(void) {
    tell_counts(setting("FAULT_COUNTS"));
    tell(setting("FAULT_UNSYNCED"), atomic_load(&most_unsynced));
}
