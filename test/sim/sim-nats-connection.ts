/**
 * One process's connection to the simulated NATS. It has the methods of nats.js's connection that the adapters in the
 * tiers' `io/` use, so a simulation runs the real adapters. The method `ask` replaces calls of JetStream's API.
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

/** A client keeps messages of the last moments before its reconnection and then sends them; older ones are lost. */
const KEPT_MS = 100;
const ASK_MS_MAX = 5_000;
const COMPANION_MS = 40;
/** A watch that receives nothing for this time begins again. */
const WATCH_SILENCE_MS = 2_000;

export class SimNatsConnection {
  readonly #process: SimProcess;
  readonly #nats: SimNats;
  readonly #scheduler: Scheduler;
  readonly #latencyMs: () => number;
  readonly up: Pipe;
  readonly down: Pipe;
  readonly #subs = new Set<Sub>();
  readonly #statuses = new Set<(status: Status) => void>();
  /** Failure callbacks of the requests that wait for an answer over this connection. */
  #pending = new Set<(error: Error) => void>();
  #kept: { readonly at: number; readonly message: Published }[] = [];
  #connected = true;
  /** The process knows that it is disconnected, and reconnects. */
  #isConnecting = false;
  #requests = 0;
  #subscriptions = 0;
  #missed = 0;
  #side = 0;
  readonly #returns: (() => void)[] = [];
  /** Another connection of the same process. It breaks with this one, and reconnects a little later. */
  #companion: SimNatsConnection | undefined;

  constructor(process: SimProcess, nats: SimNats, scheduler: Scheduler, latencyMs: () => number) {
    this.#process = process;
    this.#nats = nats;
    this.#scheduler = scheduler;
    this.#latencyMs = latencyMs;
    this.up = new Pipe(scheduler, latencyMs);
    this.down = new Pipe(scheduler, latencyMs);
  }

  get companion(): SimNatsConnection | undefined {
    return this.#companion;
  }

  /** Adds a second connection of the process. */
  addCompanion(): SimNatsConnection {
    this.#companion = new SimNatsConnection(this.#process, this.#nats, this.#scheduler, this.#latencyMs);
    return this.#companion;
  }

  /** The node of this connection while nodes are cut off from each other. Node 0 has the log. */
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

  /** The connection with the type that the adapters expect. */
  get nats(): NatsConnection {
    return this as unknown as NatsConnection;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** Count of messages that were under way at a break, or were published while disconnected. */
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
          drained = this.flush().then(close, close); // Messages that are under way arrive before the flush completes.
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

  /** Gathers replies, until none arrived for some time. */
  async requestMany(
    subject: string,
    data: Uint8Array,
    { stall, maxWait }: { stall: number; maxWait: number },
  ): Promise<AsyncIterable<SimMsg>> {
    const replies: SimMsg[] = [];
    let stalled = false;
    const inbox = `_INBOX.${this.#process.name}.${++this.#requests}`;
    const subscription = this.subscribe(inbox, {
      callback: (_, message) => {
        stalled = false;
        if (message.headers?.code !== 503) replies.push(message);
      },
    }) as { unsubscribe(): void };
    this.publish(subject, data, { reply: inbox });
    for (let waited = 0; waited < maxWait && !stalled; waited += stall) {
      stalled = replies.length > 0;
      await new Promise<void>((resolve) => void this.#process.clock.after(stall, resolve));
    }
    subscription.unsubscribe();
    return (async function* () {
      yield* replies;
    })();
  }

  /** Runs a function in the server, and returns its answer. `answers`: whether the server answers. */
  ask<Answer>(run: () => Answer, answers: () => boolean = () => true): Promise<Answer> {
    return this.#roundTrip(run, (side) => (side === 0 && answers() ? this.#scheduler.now : undefined));
  }

  /** Reads the data of the leader that answers at this node. `asOf`: time of that data; undefined: no leader answers. */
  read<Answer>(run: (asOf: number) => Answer, asOf: (side: number) => number | undefined): Promise<Answer> {
    return this.#roundTrip(run, asOf);
  }

  /** The server sends a message without a request, for example to a watch. */
  push(receive: () => void): void {
    if (this.#connected && this.side === 0) this.down.send(() => this.#process.run(receive));
  }

  /** For watches: called after a reconnection, or when the node is connected to the others again and the watch has noticed. */
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

  /** Never resolves, because a simulated process does not close its connection. */
  closed(): Promise<void> {
    return new Promise(() => {});
  }

  isClosed(): boolean {
    return false;
  }

  /** Breaks the connection; both ends know it. */
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

  /** The process has ended, and the server has noticed. */
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
      if (asOf === undefined) this.#pending.add(fail); // A request over a lost connection waits until its timeout.
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
