/** Counts the bots per room of a local system. It limits their total number and removes them after ten minutes. */

import { Worker } from "node:worker_threads";

import type { RoomId } from "../shared/ids.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { makeToken } from "./token.ts";
import type { BotOrder } from "./bots/worker.ts";

export const BOTS_MAX = 300;
const STAY_MS = 600_000;
const TTL_SECONDS = 1_200;
const NAMES = [
  "Ada",
  "Alan",
  "Anita",
  "Barbara",
  "Claude",
  "Dennis",
  "Edsger",
  "Emmy",
  "Frances",
  "Grace",
  "Hedy",
  "Joan",
  "Karen",
  "Ken",
  "Leslie",
  "Lynn",
  "Margaret",
  "Niklaus",
  "Radia",
  "Robin",
  "Shafi",
  "Sophie",
  "Tim",
  "Vint",
] as const;

export type DemoBots = Running & {
  /** Sets the number of bots; 0 removes them. Returns undefined when other rooms have too many bots. */
  set(room: RoomId, count: number): Promise<number | undefined>;
};

type DemoBotsDeps = {
  readonly jwtSecret: string;
  readonly url: () => string;
  readonly send: (order: BotOrder) => void;
  readonly after: (delayMs: number, run: () => void) => () => void;
  readonly stop: () => Promise<void>;
};

export function demoBots({ jwtSecret, url, send, after, stop }: DemoBotsDeps): DemoBots {
  const rooms = new Map<RoomId, { readonly count: number; readonly callOff: () => void }>();

  const set = async (room: RoomId, count: number): Promise<number | undefined> => {
    const elsewhere = [...rooms].reduce((sum, [other, there]) => sum + (other === room ? 0 : there.count), 0);
    if (count > 0 && elsewhere + count > BOTS_MAX) return undefined;
    rooms.get(room)?.callOff();
    rooms.delete(room);
    if (count > 0) rooms.set(room, { count, callOff: after(STAY_MS, () => void set(room, 0)) });
    const bots = Array.from({ length: count }, async (_, index) => {
      const name = nameOf(index);
      return {
        name,
        token: await makeToken(
          { room: [room], user: `bot-${index + 1}`, name, rights: ["read", "write"], tenant: "default", ttl: TTL_SECONDS },
          jwtSecret,
        ),
      };
    });
    send({ url: url(), room, bots: await Promise.all(bots) });
    return count;
  };
  return {
    set,
    stop: async () => {
      for (const { callOff } of rooms.values()) callOff();
      rooms.clear();
      await stop();
    },
  };
}

/** The worker thread of the bots. It starts with the first bot. When it fails, the next call starts a new thread. */
export function botsThread(log: Log): Pick<DemoBotsDeps, "send" | "after" | "stop"> {
  let worker: Worker | undefined;
  const start = (): Worker => {
    const started = new Worker(new URL("./bots/worker.js", import.meta.url));
    started.on("error", (cause) => {
      log.error({ cause }, "the thread of the demo bots failed");
      if (worker === started) worker = undefined;
    });
    return started;
  };
  return {
    send: (order) => (worker ??= start()).postMessage(order),
    after: (delayMs, run) => {
      const timer = setTimeout(run, delayMs);
      return () => clearTimeout(timer);
    },
    stop: async () => {
      await worker?.terminate();
      worker = undefined;
    },
  };
}

function nameOf(index: number): string {
  const round = Math.floor(index / NAMES.length);
  return `${NAMES[index % NAMES.length]}${round === 0 ? "" : ` ${round + 1}`} (bot)`;
}
