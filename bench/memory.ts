/** Memory that server processes hold, as the kernel counts it: resident pages, garbage not collected yet included. From /proc: on Linux only. */

import { readFileSync } from "node:fs";

import type { ServerProcess } from "./cpu.ts";

/** Bytes by role: the processes of one role together. */
export type MemoryByRole = Readonly<Record<string, number>>;

export function memoryByRole(processes: readonly ServerProcess[]): MemoryByRole {
  const bytes: Record<string, number> = {};
  for (const { role, pid } of processes) bytes[role] = (bytes[role] ?? 0) + residentBytesOf(pid);
  return bytes;
}

export function residentBytesOf(pid: number): number {
  if (process.platform !== "linux") return Number.NaN;
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]);
}
