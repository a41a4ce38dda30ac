/**
 * Which code ran, and how often, as V8 counts it. No code is instrumented, and no package is needed.
 *
 * V8 joins neighbouring blocks with equal counts, so a block has no identity: the count is known for each character of
 * the source instead. Reading takes about 1 ms, however much ran, and V8 reports only what ran since the previous
 * reading.
 */

import { Session } from "node:inspector";

/** The code under test. Other code, such as the fuzzer and Node, would appear as new with each input. */
const COUNTED = /^file:(?!.*\/node_modules\/).*\/(?:shared|gateway|document-service|bridges|client)\/|\/node_modules\/(?:yjs|lib0)\//;
/** Counts of one class are treated as equal: 1, 2, 3, 4 to 7, and so on, up to 64 and more. Each class is one bit. */
const CLASSES = 8;

/** `isNew`: a character ran for the first time, or in a new class of counts. `work`: the input's cost, which is equal on all machines. */
type Ran = { readonly isFirst: boolean; readonly isNew: boolean; readonly work: number };

export class CodeCoverage {
  readonly #session = new Session();
  readonly #counted: RegExp;
  /** By function: for each character, the classes of its counts so far. */
  readonly #seen = new Map<string, Uint8Array>();
  #characters = 0;

  constructor(counted = COUNTED) {
    this.#counted = counted;
    this.#session.connect();
    this.#post("Profiler.enable");
    this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Count of source characters that have run. */
  get characters(): number {
    return this.#characters;
  }

  /** Drops the coverage since the previous reading. */
  skip(): void {
    this.#post("Profiler.takePreciseCoverage");
  }

  /** Reads the coverage since the previous reading. `marks`: records it as known. */
  read(marks: boolean): Ran {
    let ran: Ran = { isFirst: false, isNew: false, work: 0 };
    for (const { url, scriptId, functions } of this.#post("Profiler.takePreciseCoverage").result) {
      if (!this.#counted.test(url)) continue;
      for (const { ranges } of functions) ran = this.#readFunction(scriptId, ranges, marks, ran);
    }
    return ran;
  }

  stop(): void {
    this.#session.disconnect();
  }

  /** Inner ranges follow their outer ranges, and replace the outer counts. */
  #readFunction(scriptId: string, ranges: readonly Range[], marks: boolean, { isFirst, isNew, work }: Ran): Ran {
    const { startOffset: start, endOffset: end } = ranges[0]!;
    const key = `${scriptId}:${start}-${end}`;
    const seen = this.#seen.get(key) ?? new Uint8Array(end - start);
    const ran = new Uint8Array(end - start);
    for (const { startOffset, endOffset, count } of ranges) {
      ran.fill(count === 0 ? 0 : 1 << classOf(count), startOffset - start, endOffset - start);
      work += count;
    }
    for (let at = 0; at < ran.length; at++) {
      const [before, now] = [seen[at]!, ran[at]!];
      if ((before | now) === before) continue;
      isNew = true;
      if (before === 0) isFirst = true;
      if (before === 0 && marks) this.#characters += 1;
      if (marks) seen[at] = before | now;
    }
    if (marks) this.#seen.set(key, seen);
    return { isFirst, isNew, work };
  }

  #post(method: string, params?: object): { readonly result: readonly ScriptCoverage[] } {
    let answer: unknown;
    this.#session.post(method, params, (error, result) => {
      if (error !== null) throw new Error(`V8 refuses ${method}: ${error.message}`);
      answer = result;
    });
    return answer as { readonly result: readonly ScriptCoverage[] };
  }
}

function classOf(count: number): number {
  return Math.min(count <= 3 ? count - 1 : Math.floor(Math.log2(count)) + 1, CLASSES - 1);
}

type Range = { readonly startOffset: number; readonly endOffset: number; readonly count: number };
type ScriptCoverage = {
  readonly scriptId: string;
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
};
