/** A log for tests that ignores everything. */

import type { Log } from "../process/log.ts";

export const SILENT_LOG: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
