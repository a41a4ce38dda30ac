/**
 * One process's connection to the simulated NATS. It has those methods of nats.js's connection that the adapters in
 * the tiers' `io/` use, so that the adapters themselves run here; and `ask`, for what they do through JetStream's API.
 */

import { errors, type MsgHdrs } from "nats";

import type { NatsConnection } from "../../shared/io/nats.ts";
import { Pipe } from "./pipe.ts";
import type { Scheduler } from "./scheduler.ts";
import { SimMsg } from "./sim-msg.ts";
import type { Delivered, Interest, Published, SimNats } from "./sim-nats.ts";
import type { SimProcess } from "./sim-process.ts";

type Receive = (error: Error | null, message: SimMsg) => void;
type Sub = {
  readonly id: number;
  readonly subject: string;
  readonly queue: string | undefined;
  readonly receive: Receive;
  interest: Interest | undefined;
  closed: boolean;
};
type Status = { readonly type: "disconnect" | "reconnect" };

/** What a client keeps while it connects anew is sent then; what it was given before is gone. */
const KEPT_MS = 100;
const ASK_MS_MAX = 5_000;
const COMPANION_MS = 40;
/** A watch that hears nothing for so long begins again. */
const WATCH_SILENCE_MS = 2_000;

export class SimLine {
  readonly #process: SimProcess;
  readonly #nats: SimNats;
  readonly #scheduler: Scheduler;
  readonly #latencyMs: () => number;
  readonly up: Pipe;
  readonly down: Pipe;
  readonly #subs = new Set<Sub>();
  readonly #statuses = new Set<(status: Status) => void>();
  /** What waits for an answer over this connection, and fails with it. */
  #pending = new Set<(error: Error) => void>();
  #kept: { readonly at: number; readonly message: Published }[] = [];
  #connected = true;
  /** Its process knows that it is not, and connects anew. */
  #isConnecting = false;
  #requests = 0;
  #subscriptions = 0;
  #missed = 0;
  #side = 0;
  readonly #returns: (() => void)[] = [];
  /** Another connection of the same process, which breaks with this one and is back a little later. */
  #companion: SimLine | undefined;

  constructor(process: SimProcess, nats: SimNats, scheduler: Scheduler, latencyMs: () => number) {
    this.#process = process;
    this.#nats = nats;
    this.#scheduler = scheduler;
    this.#latencyMs = latencyMs;
    this.up = new Pipe(scheduler, latencyMs);
    this.down = new Pipe(scheduler, latencyMs);
  }

  get companion(): SimLine | undefined {
    return this.#companion;
  }

  /** A second connection of the process. */
  addCompanion(): SimLine {
    this.#companion = new SimLine(this.#process, this.#nats, this.#scheduler, this.#latencyMs);
    return this.#companion;
  }

  /** At which of the nodes, while these are cut from each other: 0 has the log. */
  get side(): number {
    return this.#side;
  }

  moveTo(side: number): void {
    this.#side = side;
    this.#companion?.moveTo(side);
    if (side === 0)
      this.#scheduler.after(WATCH_SILENCE_MS, () =>
        this.#process.run(() => {
          for (const run of this.#returns) run();
        }),
      );
  }

  /** As the adapters take it. */
  get connection(): NatsConnection {
    return this as unknown as NatsConnection;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** So much was under way when it broke, or was to be sent while it was broken. */
  get lostEver(): number {
    return this.up.lostEver + this.down.lostEver + this.#missed;
  }

  subscribe(subject: string, options: { callback: Receive; queue?: string }): object {
    const sub: Sub = {
      id: ++this.#subscriptions,
      subject,
      queue: options.queue,
      receive: options.callback,
      interest: undefined,
      closed: false,
    };
    this.#subs.add(sub);
    if (this.#connected) this.#announce(sub);
    const forget = (): void => {
      if (this.#connected) this.up.send(() => this.#forget(sub));
    };
    const close = (): void => {
      sub.closed = true;
      this.#subs.delete(sub);
    };
    let drained: Promise<void> | undefined;
    return {
      getID: () => sub.id,
      isClosed: () => sub.closed,
      isDraining: () => drained !== undefined,
      unsubscribe: () => {
        forget();
        close();
      },
      drain: () => {
        if (drained === undefined) {
          forget();
          drained = this.flush().then(close, close); // What is on its way comes before the flush does.
        }
        return drained;
      },
    };
  }

  publish(subject: string, data: Uint8Array, { reply, headers }: { reply?: string; headers?: MsgHdrs } = {}): void {
    const message: Published = {
      subject,
      data: data.slice(),
      reply,
      headers: headers === undefined ? undefined : new Map(headers.keys().map((key) => [key, headers.get(key)])),
    };
    if (this.#connected) this.up.send(() => this.#nats.publish(message, this.side));
    else {
      this.#missed += 1;
      if (this.#isConnecting) this.#kept.push({ at: this.#scheduler.now, message });
    }
  }

  flush(): Promise<void> {
    return this.#roundTrip(() => {}, undefined);
  }

  request(subject: string, data: Uint8Array, { timeout, headers }: { timeout: number; headers?: MsgHdrs }): Promise<SimMsg> {
    return new Promise((resolve, reject) => {
      const inbox = `_INBOX.${this.#process.name}.${++this.#requests}`;
      const subscription = this.subscribe(inbox, {
        callback: (_, message) => {
          finish();
          if (message.headers?.code === 503)
            reject(new errors.RequestError("no responders", { cause: new errors.NoRespondersError(subject) }));
          else resolve(message);
        },
      }) as { unsubscribe(): void };
      const finish = (): void => {
        callOff();
        subscription.unsubscribe();
      };
      const callOff = this.#process.clock.after(timeout, () => {
        finish();
        reject(new errors.TimeoutError());
      });
      this.publish(subject, data, headers === undefined ? { reply: inbox } : { reply: inbox, headers });
    });
  }

  /** Runs something in the server, and brings its answer back; `answers` says whether there is one. */
  ask<Answer>(run: () => Answer, answers: () => boolean = () => true): Promise<Answer> {
    return this.#roundTrip(run, (side) => (side === 0 && answers() ? this.#scheduler.now : undefined));
  }

  /** Reads what whoever answers at this node has. `asOf`: since when that is so; undefined: nobody answers. */
  read<Answer>(run: (asOf: number) => Answer, asOf: (side: number) => number | undefined): Promise<Answer> {
    return this.#roundTrip(run, asOf);
  }

  /** The server says something of its own, as to a watcher. */
  push(receive: () => void): void {
    if (this.#connected && this.side === 0) this.down.send(() => this.#process.run(receive));
  }

  /** For watches: when the line is back, or its node is with the others again and the watch has noticed. */
  onReturn(run: () => void): void {
    this.#returns.push(run);
  }

  async *status(): AsyncIterable<Status> {
    const waiting: Status[] = [];
    let wake: (() => void) | undefined;
    this.#statuses.add((status) => {
      waiting.push(status);
      wake?.();
    });
    for (;;) {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) yield next;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  /** A simulated process ends without a word. */
  closed(): Promise<void> {
    return new Promise(() => {});
  }

  isClosed(): boolean {
    return false;
  }

  /** The connection breaks, and both ends know. */
  break(): void {
    this.#companion?.break();
    if (!this.#connected) return;
    this.#connected = false;
    this.up.break();
    this.down.break();
    for (const sub of this.#subs) this.#forget(sub);
    this.#process.run(() => {
      this.#isConnecting = true;
      const pending = this.#pending;
      this.#pending = new Set();
      for (const fail of pending) fail(new errors.RequestError("connection disconnected"));
      for (const tell of this.#statuses) tell({ type: "disconnect" });
    });
  }

  reconnect(): void {
    if (this.#companion !== undefined) this.#scheduler.after(COMPANION_MS, () => this.#companion?.reconnect());
    if (this.#connected || this.#process.state === "dead") return;
    this.#process.run(() => {
      if (this.#connected) return;
      this.#connected = true;
      this.#isConnecting = false;
      for (const sub of this.#subs) this.#announce(sub);
      const kept = this.#kept.filter(({ at }) => at >= this.#scheduler.now - KEPT_MS);
      this.#kept = [];
      for (const { message } of kept) this.up.send(() => this.#nats.publish(message, this.side));
      for (const tell of this.#statuses) tell({ type: "reconnect" });
      for (const run of this.#returns) run();
    });
  }

  /** The process is gone, and the server has noticed. */
  end(): void {
    this.#companion?.end();
    this.#connected = false;
    this.up.break();
    this.down.break();
    for (const sub of this.#subs) this.#forget(sub);
  }

  #announce(sub: Sub): void {
    this.up.send(() => {
      if (sub.closed || sub.interest !== undefined) return;
      sub.interest = {
        subject: sub.subject,
        queue: sub.queue,
        side: () => this.side,
        deliver: (message) => this.down.send(() => this.#receive(sub, message)),
      };
      this.#nats.subscribe(sub.interest);
    });
  }

  #forget(sub: Sub): void {
    if (sub.interest !== undefined) this.#nats.unsubscribe(sub.interest);
    sub.interest = undefined;
  }

  #receive(sub: Sub, message: Delivered): void {
    this.#process.run(() => {
      if (!sub.closed) sub.receive(null, new SimMsg(sub.id, message, this));
    });
  }

  #roundTrip<Answer>(run: (asOf: number) => Answer, asOf: ((side: number) => number | undefined) | undefined): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (!this.#connected && asOf === undefined) return reject(new errors.RequestError("connection disconnected"));
      const fail = (error: Error): void => {
        callOff();
        this.#pending.delete(fail);
        reject(error);
      };
      const callOff = asOf === undefined ? () => {} : this.#process.clock.after(ASK_MS_MAX, () => fail(new errors.TimeoutError()));
      if (asOf === undefined) this.#pending.add(fail); // A request that was asked over a lost line runs into its deadline.
      if (!this.#connected) {
        this.#missed += 1;
        return;
      }
      this.up.send(() => {
        const then = asOf === undefined ? this.#scheduler.now : asOf(this.side);
        if (then === undefined) return;
        const answer = run(then);
        this.down.send(() =>
          this.#process.run(() => {
            callOff();
            this.#pending.delete(fail);
            resolve(answer);
          }),
        );
      });
    });
  }
}
