/**
 * Flags of Node for every process of Coroom. By default V8's young generation grows to three times 16 MiB and keeps
 * most of it once thousands of clients are connected. A quarter of the size makes collections more frequent and
 * shorter.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=4"];
