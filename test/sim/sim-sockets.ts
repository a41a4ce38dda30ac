/**
 * WebSockets between tabs and gateways. It implements both ends: `Sockets` of a gateway over uWebSockets.js, and
 * `Socket` of a client. Frames keep their order in each direction; frames that are under way at a break are lost.
 */

import { CLOSE, type CloseName } from "../../shared/wire/close-codes.ts";
import type { Socket, SocketListener } from "../../client/ports.ts";
import type { Clients, ConnectionId, Sockets, Topics } from "../../gateway/ports.ts";
import { Pipe } from "./pipe.ts";
import type { Scheduler } from "./scheduler.ts";
import type { SimProcess } from "./sim-process.ts";

const BROKEN = 1006;
/** Overwrites frames after a call that may use them only during the call, so that a part which kept a view reads this byte. */
const AFTER_THE_CALL = 0xee;

/** The listening socket of a gateway. */
export class SimListener {
  readonly process: SimProcess;
  readonly #scheduler: Scheduler;
  readonly #latencyMs: () => number;
  readonly #connections = new Map<ConnectionId, SimConnection>();
  readonly #members = new Map<string, Set<ConnectionId>>();
  #clients: Clients | undefined;
  #lastId = 0;
  isReady: () => boolean = () => true;

  constructor(process: SimProcess, scheduler: Scheduler, latencyMs: () => number) {
    this.process = process;
    this.#scheduler = scheduler;
    this.#latencyMs = latencyMs;
  }

  /** Count of connections. */
  get size(): number {
    return this.#connections.size;
  }

  start(clients: Clients): void {
    this.#clients = clients;
  }

  readonly topics: Topics = {
    publishTo: (topic, frame, except) => {
      const copy = frame.slice();
      const recipients = [...(this.#members.get(topic) ?? [])].filter((member) => member !== except);
      for (const member of recipients) this.#connections.get(member)?.toClient(copy.slice());
      return recipients.length;
    },
    listenTo: (connection, topic) => {
      const members = this.#members.get(topic) ?? new Set();
      this.#members.set(topic, members.add(connection));
    },
    unlistenTo: (connection, topic) => {
      this.#members.get(topic)?.delete(connection);
    },
  };

  readonly sockets: Sockets = {
    send: (to, frame) => this.#connections.get(to)?.toClient(frame.slice()),
    publish: (channel, frame, except) => this.topics.publishTo(String(channel), frame, except),
    listen: (connection, channel) => this.topics.listenTo(connection, String(channel)),
    unlisten: (connection, channel) => this.topics.unlistenTo(connection, String(channel)),
    whenRead: (id, receive) => this.#connections.get(id)?.whenRead(receive),
    close: (id, close) => {
      this.#connections.get(id)?.closeByGateway(close);
    },
  };

  /** Undefined: the gateway accepts no connection. */
  connect(client: SimProcess, listener: SocketListener): SimConnection | undefined {
    const clients = this.#clients;
    if (this.process.state === "dead" || clients === undefined || !this.isReady()) return undefined;
    const id = ++this.#lastId as ConnectionId;
    const gateway = {
      process: this.process,
      receiveFrame: (bytes: Uint8Array) => {
        clients.receiveFrame(id, bytes);
        bytes.fill(AFTER_THE_CALL);
      },
      receiveSlowness: () => clients.receiveReadProgress(id, "stuck"),
      receiveDisconnection: () => {
        if (!this.#connections.delete(id)) return;
        for (const members of this.#members.values()) members.delete(id);
        clients.receiveDisconnection(id);
      },
    };
    const connection = new SimConnection(gateway, client, listener, this.#scheduler, this.#latencyMs);
    this.#connections.set(id, connection);
    this.process.run(() => clients.receiveConnection(id, undefined));
    return connection;
  }

  /** The process has ended. `telling`: the machine still runs, so its kernel closes the clients' connections. */
  end(telling: boolean): void {
    for (const connection of this.#connections.values()) connection.loseGateway(telling);
    this.#connections.clear();
  }
}

type GatewayEnd = {
  readonly process: SimProcess;
  receiveFrame(bytes: Uint8Array): void;
  receiveSlowness(): void;
  receiveDisconnection(): void;
};

/** One WebSocket. Each end closes when it learns of the close. */
export class SimConnection implements Socket {
  readonly #gateway: GatewayEnd;
  readonly #client: SimProcess;
  readonly #listener: SocketListener;
  readonly #up: Pipe;
  readonly #down: Pipe;
  #clientOpen = true;
  #gatewayOpen = true;

  constructor(gateway: GatewayEnd, client: SimProcess, listener: SocketListener, scheduler: Scheduler, latencyMs: () => number) {
    this.#gateway = gateway;
    this.#client = client;
    this.#listener = listener;
    this.#up = new Pipe(scheduler, latencyMs);
    this.#down = new Pipe(scheduler, latencyMs);
    this.#toClient(() => listener.opened());
  }

  get isOpen(): boolean {
    return this.#clientOpen;
  }

  get isOpenAtGateway(): boolean {
    return this.#gatewayOpen;
  }

  /** Sends a frame from the client. */
  send(bytes: Uint8Array): void {
    const copy = bytes.slice();
    if (this.#clientOpen) this.#toGateway(() => this.#gateway.receiveFrame(copy));
  }

  /** The client closes the connection. */
  close(): void {
    this.#clientOpen = false;
    this.#toGateway(() => this.#loseClient());
  }

  toClient(bytes: Uint8Array): void {
    if (this.#gatewayOpen) this.#toClient(() => this.#listener.received(bytes));
  }

  /** Once the client has received all frames that were sent before. */
  whenRead(receive: () => void): void {
    this.#toClient(() =>
      this.#gateway.process.run(() => {
        if (this.#gatewayOpen) receive();
      }),
    );
  }

  becomeSlow(): void {
    this.#gateway.process.run(() => {
      if (this.#gatewayOpen) this.#gateway.receiveSlowness();
    });
  }

  /** Holds all frames of these directions, without informing either end. */
  goSilent({ up, down }: { up: boolean; down: boolean }): void {
    if (up) this.#up.hold();
    if (down) this.#down.hold();
  }

  get heldEver(): number {
    return this.#up.heldEver + this.#down.heldEver;
  }

  /** Breaks the connection: frames that are under way are lost, and both ends learn of the break. */
  break(): void {
    this.#up.break();
    this.#down.break();
    this.#up.release();
    this.#down.release();
    this.#toGateway(() => this.#loseClient());
    this.#toClient(() => this.#closeClient(BROKEN));
  }

  loseGateway(telling: boolean): void {
    this.#gatewayOpen = false;
    this.#up.break();
    this.#down.break();
    if (telling) this.#toClient(() => this.#closeClient(BROKEN));
  }

  /**
   * As with uWebSockets.js, the gateway learns of the close immediately. The client learns of it after all frames that
   * were sent before.
   */
  closeByGateway(close: CloseName): void {
    if (!this.#gatewayOpen) return;
    this.#toClient(() => this.#closeClient(CLOSE[close].code));
    this.#loseClient();
  }

  #loseClient(): void {
    if (!this.#gatewayOpen) return;
    this.#gatewayOpen = false;
    this.#gateway.receiveDisconnection();
  }

  #closeClient(code: number): void {
    this.#clientOpen = false;
    this.#listener.closed(code);
  }

  #toGateway(task: () => void): void {
    this.#up.send(() =>
      this.#gateway.process.run(() => {
        if (this.#gatewayOpen) task();
      }),
    );
  }

  #toClient(task: () => void): void {
    this.#down.send(() =>
      this.#client.run(() => {
        if (this.#clientOpen) task();
      }),
    );
  }
}
