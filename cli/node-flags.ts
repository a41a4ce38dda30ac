/**
 * Flags of Node for every process of Coroom. By default V8 compiles and collects garbage in four threads on any machine.
 * On one core they took 100 of 139 ms of a collection (docs/PERFORMANCE.md). With 0 there is one thread less than the
 * process has cores, and at least one.
 */
export const NODE_FLAGS: readonly string[] = ["--v8-pool-size=0"];
