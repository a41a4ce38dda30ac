/** CPU seconds that server processes and the whole machine have used, as the kernel counts them, in ticks of 10 ms. Read from /proc: on Linux only. */

import { readFileSync } from "node:fs";

export type ServerProcess = { readonly role: string; readonly pid: number };
/** Seconds by role: the processes of one role together. */
export type CpuByRole = Readonly<Record<string, number>>;

const TICKS_PER_SECOND = 100;
/** Fields of /proc/<pid>/stat behind the name, which may hold anything and ends with the last bracket. */
const [USER_TIME, SYSTEM_TIME] = [11, 12];

export function cpuByRole(processes: readonly ServerProcess[]): CpuByRole {
  const seconds: Record<string, number> = {};
  for (const { role, pid } of processes) seconds[role] = (seconds[role] ?? 0) + cpuSecondsOf(pid);
  return seconds;
}

export function cpuBetween(before: CpuByRole, after: CpuByRole): CpuByRole {
  return Object.fromEntries(Object.entries(after).map(([role, seconds]) => [role, seconds - (before[role] ?? 0)]));
}

/** What all processes of the machine have used: more than the bench's own, and its figures are not to be trusted. */
export function cpuOfMachine(): number {
  if (process.platform !== "linux") return Number.NaN;
  const [user, nice, system, , , irq, softIrq, steal] = readFileSync("/proc/stat", "latin1")
    .split("\n")[0]!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user! + nice! + system! + irq! + softIrq! + steal!) / TICKS_PER_SECOND;
}

function cpuSecondsOf(pid: number): number {
  if (process.platform !== "linux") return Number.NaN;
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[USER_TIME]) + Number(fields[SYSTEM_TIME])) / TICKS_PER_SECOND;
}
