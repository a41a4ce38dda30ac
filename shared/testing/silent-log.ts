/** A log for tests to which it does not matter what is said there. */

import type { Log } from "../log.ts";

export const SILENT: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
