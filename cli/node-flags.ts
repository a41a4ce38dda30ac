/**
 * Flags of Node for every process of Coroom.
 *
 * - By default V8's young generation grows to three times 16 MiB and keeps most of it once thousands of clients are
 *   connected. A quarter of the size makes collections more frequent and shorter.
 * - By default V8 compiles and collects garbage in four threads on any machine. On one or two cores these threads take
 *   four fifths of a core from the main thread during a collection. With 0 V8 starts one thread less than it has cores.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=4", "--v8-pool-size=0"];
