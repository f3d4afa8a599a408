/* Adds the numbers from 1 to the first argument and prints the sum. It saves its state when the
 * site wants one, and goes on from there when it is started again, here or on another machine.
 * Build it with cc -O2 -o sum sum.c, or for WASM with clang --target=wasm32-wasi. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *in(const char *name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", getenv("MRS_CKPT_DIR"), name);
  return path;
}

static int wanted(void) {
  struct stat s;
  return getenv("MRS_CKPT_DIR") && stat(in("wanted"), &s) == 0;
}

/* save puts a state in the place of the one before. Never write it in place: it may be read. */
static int save(long long i, long long sum, long long last) {
  char next[4096];
  FILE *file = fopen(in("percent"), "w");
  if (!file || fprintf(file, "%lld\n", 100 * i / last) < 0 || fclose(file) != 0) return -1;
  snprintf(next, sizeof next, "%s", in("next"));
  file = fopen(next, "w");
  if (!file || fprintf(file, "%lld %lld\n", i, sum) < 0 || fclose(file) != 0) return -1;
  return rename(next, in("state"));
}

int main(int count, char **args) {
  long long i = 0, sum = 0, last = count > 1 ? atoll(args[1]) : 0;
  FILE *file = getenv("MRS_CKPT_DIR") ? fopen(in("state"), "r") : NULL;
  if (file) {
    if (fscanf(file, "%lld %lld", &i, &sum) != 2) return 1;
    fclose(file);
  }
  while (i < last) {
    sum += ++i;
    /* A look at a file takes longer than many additions. */
    if (i % 100000 == 0 && wanted() && save(i, sum, last) != 0) perror("save");
  }
  printf("%lld\n", sum);
  return 0;
}
