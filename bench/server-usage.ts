/**
 * CPU and memory of server processes and of the whole machine, as the kernel counts them. Read from /proc, so on Linux
 * only.
 */

import { readdirSync, readFileSync } from "node:fs";

export type ServerProcess = { readonly role: string; readonly pid: number };
/** Seconds by role, summed over its processes. */
export type CpuByRole = Readonly<Record<string, number>>;

const TICKS_PER_SECOND = 100;
/**
 * Fields of /proc/<pid>/stat after the process name, which may contain any character and ends with the last bracket.
 */
const [USER_TIME, SYSTEM_TIME] = [11, 12];

export function cpuByRole(processes: readonly ServerProcess[]): CpuByRole {
  const seconds: Record<string, number> = {};
  for (const { role, pid } of processes) seconds[role] = (seconds[role] ?? 0) + cpuSecondsOf(pid);
  return seconds;
}

export function cpuBetween(before: CpuByRole, after: CpuByRole): CpuByRole {
  return Object.fromEntries(Object.entries(after).map(([role, seconds]) => [role, seconds - (before[role] ?? 0)]));
}

/** CPU seconds of all processes of the machine. If other processes use much of it, the figures are not reliable. */
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

/** The system calls of a process: reads and writes of files and sockets, and how often one of its threads slept. */
type KernelCalls = { readonly reads: number; readonly writes: number; readonly wakeUps: number };

/** uWebSockets.js sends and receives with calls that the kernel does not count here. */
export function kernelCallsOf(pid: number): KernelCalls {
  const io = readFileSync(`/proc/${pid}/io`, "latin1");
  const count = (name: string): number => Number(new RegExp(`^${name}: (\\d+)$`, "m").exec(io)![1]);
  const wakeUps = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, "latin1"))![1]),
  );
  return { reads: count("syscr"), writes: count("syscw"), wakeUps: wakeUps.reduce((sum, one) => sum + one, 0) };
}

/** Resident bytes by role, summed over its processes, including garbage that is not collected yet. */
type MemoryByRole = Readonly<Record<string, number>>;

export function memoryByRole(processes: readonly ServerProcess[]): MemoryByRole {
  const bytes: Record<string, number> = {};
  for (const { role, pid } of processes) bytes[role] = (bytes[role] ?? 0) + residentBytesOf(pid);
  return bytes;
}

export function residentBytesOf(pid: number): number {
  if (process.platform !== "linux") return Number.NaN;
  return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))![1]);
}
