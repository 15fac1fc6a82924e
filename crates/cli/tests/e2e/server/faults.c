/* Faults of a disk on demand, laid over the C library with LD_PRELOAD.
 *
 * A fault is on while a file of its name is in the folder FAULTS: "sync" fails every sync, "quick" leaves it out,
 * "stall" keeps it waiting and makes a folder "stalled-" with the name of the thread that waits, "full" fails every write
 * to a file, "unmergeable" those of the thread that compacts tables, "readonly" every write and every file that would be
 * opened for writing. Sockets and standard output and error are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int path_of(const char *fault, char *path, size_t size) {
    const char *folder = getenv("FAULTS");
    return folder != NULL && snprintf(path, size, "%s/%s", folder, fault) > 0;
}

static int is_on(const char *fault) {
    char path[4096];
    return path_of(fault, path, sizeof path) && access(path, F_OK) == 0;
}

static void thread_name(char *name) {
    if (prctl(PR_GET_NAME, name) != 0) {
        name[0] = '\0';
    }
}

static void stall(void) {
    char name[32] = "stalled-", path[4096];
    thread_name(name + strlen(name));
    while (is_on("stall") && path_of(name, path, sizeof path)) {
        mkdir(path, 0700);
        usleep(1000);
    }
}

static int is_file(int fd) {
    struct stat file;
    return fd > 2 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode);
}

static int fails(int code) {
    errno = code;
    return -1;
}

#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

static int sync_with(const char *name, int fd) {
    stall();
    if (is_on("sync")) {
        return fails(EIO);
    }
    return is_on("quick") ? 0 : REAL(name, int (*)(int))(fd);
}

int fsync(int fd) {
    return sync_with("fsync", fd);
}

int fdatasync(int fd) {
    return sync_with("fdatasync", fd);
}

static int merges(void) {
    char thread[16];
    thread_name(thread);
    return strcmp(thread, "tavola-compact") == 0;
}

static int write_fault(int fd) {
    if (!is_file(fd)) {
        return 0;
    }
    if (merges() && is_on("unmergeable")) {
        return ENOSPC;
    }
    return is_on("full") ? ENOSPC : is_on("readonly") ? EROFS : 0;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    int fault = write_fault(fd);
    return fault ? fails(fault) : REAL("write", ssize_t(*)(int, const void *, size_t))(fd, bytes, count);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    int fault = write_fault(fd);
    return fault ? fails(fault) : REAL("writev", ssize_t(*)(int, const struct iovec *, int))(fd, parts, count);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, int);
    va_end(rest);
    int writes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
    if (writes && is_on("readonly")) {
        return fails(EROFS);
    }
    return REAL("open64", int (*)(const char *, int, ...))(path, flags, mode);
}
