/**
 * `npm run fuzz -- TARGET --seconds N`: fuzzes in a thread that the main thread watches. An input that takes too long
 * or too much memory is a finding too. Prints each finding as a line for the corpus, and exits with 1 if there was a
 * finding.
 */

import { writeFileSync, writeSync } from "node:fs";
import { parseArgs } from "node:util";
import { isMainThread, Worker, workerData } from "node:worker_threads";

import { CodeCoverage } from "./coverage.ts";
import { allInputs, corpusFile, corpusLines, type FuzzTarget, loadTarget, TARGET_NAMES } from "./fuzz-target.ts";
import { Fuzzer, type FuzzFinding, messageOf } from "./fuzzer.ts";

const USAGE = `npm run fuzz -- TARGET [--seconds N] [--seed N] [--keep]

  TARGET       ${TARGET_NAMES.join(", ")}
  --seconds N  duration (60)
  --seed N     seed of all mutations (the date)
  --keep       add inputs that reach new code to the corpus`;
const OPTIONS = {
  seconds: { type: "string", default: "60" },
  seed: { type: "string" },
  keep: { type: "boolean", default: false },
} as const;

const BYTES_MAX = 8_192;
const HEAP_MB_MAX = 768;
/** CPU time, because a busy machine delays any input. */
const INPUT_CPU_MS_MAX = 20_000;
const LOOK_MS = 500;
const REPORT_MS = 30_000;
/** The corpus stays small enough to read. */
const KEPT_BYTES_MAX = 1_024;
const KEPT_MAX = 400;

type Run = { readonly name: string; readonly seconds: number; readonly seed: number; readonly keep: boolean };
/** Shared with the watcher: the number of inputs, the length of the current one, and its bytes. */
type Shared = { readonly state: Int32Array; readonly bytes: Uint8Array };

if (isMainThread) watch();
else await fuzzInThread(workerData as Run & Shared);

function watch(): void {
  const run = parseRun(process.argv.slice(2));
  if (run === undefined) {
    console.error(USAGE);
    process.exit(2);
  }
  const shared: Shared = { state: new Int32Array(new SharedArrayBuffer(8)), bytes: new Uint8Array(new SharedArrayBuffer(BYTES_MAX)) };
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { ...run, ...shared },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
  });
  const fail = (why: string): void => {
    print(corpusLine(shared.bytes.slice(0, shared.state[1]), why));
    process.exitCode = 1;
    void worker.terminate();
  };
  let seen = { runs: 0, cpuMs: cpuMs() };
  const look = setInterval(() => {
    const runs = shared.state[0]!;
    if (runs === 0 || runs !== seen.runs) seen = { runs, cpuMs: cpuMs() };
    else if (cpuMs() - seen.cpuMs > INPUT_CPU_MS_MAX) fail(`takes more than ${INPUT_CPU_MS_MAX} ms of CPU`);
  }, LOOK_MS);
  worker.on("error", (error) => fail(messageOf(error)));
  worker.on("exit", (code) => {
    clearInterval(look);
    if (code !== 0) process.exitCode = 1;
  });
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Undefined: the usage is printed. */
function parseRun(args: string[]): Run | undefined {
  const parsed = readArguments(args);
  if (parsed === undefined) return undefined;
  const { values, positionals } = parsed;
  const name = positionals[0] ?? "";
  const [seconds, seed] = [Number(values.seconds), Number(values.seed ?? Math.floor(Date.now() / 1_000))];
  if (!TARGET_NAMES.some((known) => known === name) || positionals.length !== 1 || !(seconds > 0) || !Number.isSafeInteger(seed))
    return undefined;
  return { name, seconds, seed, keep: values.keep };
}

function readArguments(args: string[]) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    if (error instanceof TypeError) return undefined; // An unknown option, or one without its value.
    throw error;
  }
}

async function fuzzInThread({ name, seconds, seed, keep, state, bytes }: Run & Shared): Promise<void> {
  const target = await loadTarget(name);
  const begun = performance.now();
  const onInput = (input: Uint8Array): void => {
    state[0]! += 1;
    state[1] = Math.min(input.byteLength, BYTES_MAX);
    bytes.set(input.subarray(0, BYTES_MAX));
  };
  const coverage = new CodeCoverage();
  const fuzzer = new Fuzzer(target, coverage, { seed, bytesMax: BYTES_MAX, onInput });
  const found = new Set<string>();
  const receive = (finding: FuzzFinding | undefined): void => {
    if (finding === undefined || found.has(messageOf(finding.error))) return;
    found.add(messageOf(finding.error));
    print(`${(finding.error as Error).stack}\n${corpusLine(fuzzer.shrink(finding).input, messageOf(finding.error))}`);
    process.exitCode = 1;
  };
  const report = (): void => {
    const done = (performance.now() - begun) / 1_000;
    const rate = Math.round(fuzzer.runs / done);
    print(
      `${name}: ${fuzzer.runs} inputs in ${done.toFixed(0)} s (${rate} per second), ${fuzzer.accepted} accepted, ` +
        `${coverage.characters} characters of code reached, pool of ${fuzzer.pool.length}, ${found.size} findings, seed ${seed}`,
    );
  };
  receive(fuzzer.begin(allInputs(name, target)));
  let reported = begun;
  while (performance.now() - begun < seconds * 1_000) {
    receive(fuzzer.step());
    if (performance.now() - reported < REPORT_MS) continue;
    reported = performance.now();
    report();
  }
  report();
  if (keep) keepCorpus(name, target, fuzzer.pool);
}

/** At once: output through `console` leaves a thread only when the thread waits, and the fuzzer never does. */
function print(output: string): void {
  writeSync(1, `${output}\n`);
}

/** Adds the new inputs of the pool, shortest first. Lines with a reason stay. */
function keepCorpus(name: string, target: FuzzTarget, pool: readonly Uint8Array[]): void {
  const lines = corpusLines(name);
  const known = new Set(allInputs(name, target).map(hexOf));
  const added = pool
    .filter((input) => input.byteLength <= KEPT_BYTES_MAX && !known.has(hexOf(input)))
    .sort((a, b) => a.byteLength - b.byteLength)
    .slice(0, Math.max(0, KEPT_MAX - lines.length));
  writeFileSync(corpusFile(name), [...lines, ...added.map(hexOf)].map((line) => `${line}\n`).join(""));
}

function hexOf(input: Uint8Array): string {
  return Buffer.from(input).toString("hex");
}

function corpusLine(input: Uint8Array, why: string): string {
  return `${hexOf(input)} # ${why.replaceAll("\n", " ").slice(0, 120)}`;
}
