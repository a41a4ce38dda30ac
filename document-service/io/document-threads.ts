/**
 * Merges and reads documents in threads: a long document takes hundreds of milliseconds, while the service must read
 * the log, answer requests and renew its leases. A thread runs one task at a time, so a task that takes too long costs
 * its own thread and no other task (`thread-pools.ts`). `thread-lanes.ts` decides which tasks may share threads.
 */

import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Merging, DocumentReads, EditMaking, Reverting, Unread } from "../ports.ts";
import { type ThreadLane, ThreadLanes, type ThreadTaskKind } from "../thread-lanes.ts";
import type { ThreadAnswer, ThreadQuestion, Task } from "./document-worker.ts";
import { pack } from "./packed-edits.ts";
import { ThreadPools } from "./thread-pools.ts";

type ThreadOptions = {
  readonly mergeMsMax: number;
  readonly mergeThreads: number;
  readonly readsWaitingMax: number;
  readonly worker?: URL;
};

/** `quarantinedRooms`: a gauge. `waits`: a histogram of seconds until a thread takes a task. */
type DocumentThreadsDeps = {
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
  readonly quarantinedRooms?: { set(rooms: number): void };
  readonly waits?: { observe(labels: { readonly lane: ThreadLane; readonly kind: ThreadTaskKind }, seconds: number): void };
};

const QUARANTINED =
  "a room is quarantined: it was not merged in one second. Its merges share one thread with other such rooms, and pauses between them double. Check what its writers send (docs/operations/limits.md)";
const RELEASED = "a room is merged quickly again and leaves quarantine";

/**
 * Number of tries of a task on one state that may end their threads, because they die or exceed their time. After that,
 * the task is not run on this state again. An edit makes a new state.
 */
const DEATHS_MAX = 3;
/**
 * Number of such tries of all tasks together on one state. After that, no task runs on it. A limit per task is not
 * enough, because requests may name any number of types.
 */
const DEATHS_OF_STATE_MAX = 12;

type Deaths = { readonly byTask: Map<string, number>; last: "busy" | "overran" };

/** `worker`: the file that the threads run. `waiting`: tasks that no thread has taken yet. */
export function documentThreads(
  { mergeMsMax, mergeThreads, readsWaitingMax, worker }: ThreadOptions,
  { clock, log, quarantinedRooms, waits }: DocumentThreadsDeps,
): Merging & DocumentReads & EditMaking & Reverting & { readonly waiting: number; stop(): Promise<void> } {
  const pools = new ThreadPools({ mergeMsMax, mergingThreads: ThreadLanes.mergingThreadsOf({ mergeThreads }), worker }, { clock, log });
  const lanes = new ThreadLanes({ mergeMsMax, mergeThreads, readsWaitingMax });
  /** Thread deaths, by state and task. */
  const deaths = new WeakMap<Uint8Array, Deaths>();

  /** "refused": too many tasks wait. Nothing was tried. */
  const askIn = async <T extends Task>(
    lane: ThreadLane,
    { kind, room }: { readonly kind: ThreadTaskKind; readonly room: RoomKey },
    task: T,
    question: () => ThreadQuestion<T>,
    signal?: AbortSignal,
  ): Promise<ThreadAnswer<T> | Unread | "refused"> => {
    const askedAt = clock.now();
    const isTaken = await new Promise<boolean>((decide) =>
      lanes.take(lane, { kind, room, start: () => decide(true), refuse: () => decide(false) }),
    );
    if (!isTaken) return "refused";
    const startedAt = clock.now();
    waits?.observe({ lane, kind }, (startedAt - askedAt) / 1000);
    try {
      return await pools.run(lane, { task, question, msMax: lanes.msMax(lane), signal });
    } finally {
      lanes.release(lane, { kind, room }, clock.now() - startedAt);
    }
  };

  const askAsWriter = async <T extends Task>(room: RoomKey, task: T, question: ThreadQuestion<T>): Promise<ThreadAnswer<T> | Unread> =>
    busyIfRefused(await askIn("writes", { kind: "write", room }, task, () => question));

  /**
   * A read of a history holds one of few places, so it never waits in quarantine: it would get an answer after its caller
   * has left, and would keep the readers of other rooms waiting.
   */
  const askOfHistory = async <T extends Task>(
    room: RoomKey,
    task: T,
    question: () => ThreadQuestion<T>,
    signal?: AbortSignal,
  ): Promise<ThreadAnswer<T> | Unread> => {
    const asked = { kind: "read", room } as const;
    if (lanes.laneOfHistory(room, clock.now()) === "quick") {
      const answer = busyIfRefused(await askIn("quick", asked, task, question, signal));
      if (answer !== "overran" || signal?.aborted === true) return answer;
      lanes.quarantineHistory(room, clock.now());
    }
    return lanes.hasFreeThread("quarantine") ? busyIfRefused(await askIn("quarantine", asked, task, question, signal)) : "busy";
  };

  const merge: Merging["merge"] = async (state, edits, room, urgency, authors) => {
    let startedAt = clock.now();
    const question = (): ThreadQuestion<"merge"> => {
      startedAt = clock.now();
      return { state, edits: pack(edits), authors };
    };
    const first = lanes.laneOf(room, clock.now());
    const asked = { kind: urgency, room };
    let answer = busyIfRefused(await askIn(first, asked, "merge", question));
    if (answer === "overran" && first === "quick") {
      if (lanes.quarantine(room, clock.now())) log.warn({ room }, QUARANTINED);
      answer = busyIfRefused(await askIn("quarantine", asked, "merge", question));
    }
    if (answer === "overran") lanes.quarantine(room, clock.now());
    else if (typeof answer === "object" && lanes.receiveMerged(room, clock.now() - startedAt)) log.info({ room }, RELEASED);
    quarantinedRooms?.set(lanes.quarantinedRooms(clock.now()));
    return answer;
  };

  /**
   * `name`: the task's name. A task that needs more memory or time than a thread has would end a thread at every request. A
   * task that exceeds its quick try is tried once more in quarantine.
   */
  const askOf = async <T extends Task>(
    task: T,
    room: RoomKey,
    question: ThreadQuestion<T> & { readonly state: Uint8Array },
    name: string,
  ): Promise<ThreadAnswer<T> | Unread> => {
    const ofState: Deaths = deaths.get(question.state) ?? { byTask: new Map(), last: "busy" };
    const died = ofState.byTask.get(name) ?? 0;
    if (died >= DEATHS_MAX || sumOf(ofState.byTask.values()) >= DEATHS_OF_STATE_MAX)
      return ofState.last === "overran" ? "overran" : "unreadable";
    let answer = await askIn("quick", { kind: "read", room }, task, () => question);
    if (answer === "overran") answer = await askIn("quarantine", { kind: "read", room }, task, () => question);
    if (answer === "refused") return "busy";
    if (answer !== "busy" && answer !== "overran") return answer;
    ofState.byTask.set(name, died + 1);
    ofState.last = answer;
    deaths.set(question.state, ofState);
    return answer;
  };

  return {
    get waiting() {
      return lanes.waiting;
    },
    merge,
    mergeHistory: (state, edits, room, signal) => askOfHistory(room, "merge", () => ({ state, edits: pack(edits) }), signal),
    diff: (state, room, vector) => askOf("diff", room, { state, vector }, "diff"),
    json: (state, room, wanted) => askOf("json", room, { state, wanted }, `json ${JSON.stringify(wanted)}`),
    text: (state, room, name) => askOf("text", room, { state, name }, `text ${name ?? ""}`),
    rendered: (state, room, format, wanted) => askOf("render", room, { state, format, wanted }, `${format} ${JSON.stringify(wanted)}`),
    check: (edit, room) => askAsWriter(room, "check", { edit }),
    make: (content, room) => askAsWriter(room, "make", { content }),
    makeOfJson: (body, room) => askAsWriter(room, "makeOfJson", { body }),
    revert: (current, past, room) => askOfHistory(room, "revert", () => ({ current, past })),
    stop: () => pools.stop(),
  };
}

function busyIfRefused<Answer>(answer: Answer | "refused"): Answer | "busy" {
  return answer === "refused" ? "busy" : answer;
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}
