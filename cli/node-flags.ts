/**
 * Flags of Node for every process of Coroom.
 *
 * - By default V8's young generation grows to three times 16 MiB and keeps most of it once thousands of clients are
 *   connected. A quarter of the size makes collections more frequent and shorter.
 * - By default V8 compiles and collects garbage in four threads on any machine. On one core they took 100 of 139 ms of a
 *   collection (docs/PERFORMANCE.md). With 0 there is one thread less than the process has cores, and at least one.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=4", "--v8-pool-size=0"];
