/**
 * How Node is to be started for a process of Coroom. V8 keeps a young generation as large as its busiest moment needed,
 * three times 16 MiB by default, and most of it for good once thousands are connected. At a quarter of that collections
 * are as many times more frequent, and shorter.
 */
export const NODE_FLAGS: readonly string[] = ["--max-semi-space-size=4"];
