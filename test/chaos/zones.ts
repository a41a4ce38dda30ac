/**
 * Three zones on one machine. Each nats-server has its own zone, and each other process is in one of the zones. Traffic
 * between zones uses connections that can be cut. A cut connection is silent, like a broken network.
 */

import type { ProcessName } from "../system/cluster.ts";
import { CuttableConnection, type Way } from "../system/cuttable-connection.ts";

type ZoneConnection = {
  readonly from: string;
  readonly fromZone: number;
  readonly toZone: number;
  readonly connection: CuttableConnection;
};

export class Zones {
  readonly #connections: ZoneConnection[] = [];
  readonly #count: number;

  /** `count`: the number of nats-servers. */
  constructor(count: number) {
    this.#count = count;
  }

  /** The connection from one nats-server to another. */
  readonly route = async (from: number, to: number, address: string): Promise<string> => {
    const connection = await this.#open(`nats-${from + 1}`, from, to, `nats://${address}`);
    return new URL(connection.url).host;
  };

  /** A process has one connection to each nats-server. */
  readonly natsUrlOf = async (process: ProcessName, servers: readonly string[]): Promise<string> => {
    const connections = await Promise.all(servers.map((server, zone) => this.#open(nameOf(process), this.zoneOf(process), zone, server)));
    return connections.map(({ url }) => url).join(",");
  };

  zoneOf({ index }: ProcessName): number {
    return index % this.#count;
  }

  /** Cuts all connections between this zone and the others. Returns the repair function. */
  cutZone(zone: number): () => void {
    return this.#cut(({ fromZone, toZone }) => (fromZone === zone) !== (toZone === zone));
  }

  /** Cuts all connections between two zones; both still reach the third. */
  cutBetween(one: number, other: number): () => void {
    return this.#cut(({ fromZone, toZone }) => (fromZone === one && toZone === other) || (fromZone === other && toZone === one));
  }

  /** Cuts one nats-server off from the other nats-servers. All processes still reach it. */
  cutRoutes(server: number): () => void {
    return this.#cut(({ from, fromZone, toZone }) => from.startsWith("nats-") && (fromZone === server || toZone === server));
  }

  /** Cuts one process off from all nats-servers. A cut in one direction leaves the other direction open. */
  cutOff(process: ProcessName, way: Way): () => void {
    return this.#cut(({ from }) => from === nameOf(process), way);
  }

  /** Closes the process's connections to all nats-servers. It may connect again. */
  breakOff(process: ProcessName): void {
    for (const { from, connection } of this.#connections) if (from === nameOf(process)) connection.breakOff();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#connections.map(({ connection }) => connection.stop()));
  }

  #cut(isCut: (connection: ZoneConnection) => boolean, way: Way = "both"): () => void {
    const cut = this.#connections.filter(isCut);
    for (const { connection } of cut) connection.cut(way);
    return () => {
      for (const { connection } of cut) connection.repair();
    };
  }

  async #open(from: string, fromZone: number, toZone: number, url: string): Promise<CuttableConnection> {
    const connection = await CuttableConnection.start(url);
    this.#connections.push({ from, fromZone, toZone, connection });
    return connection;
  }
}

function nameOf({ role, index }: ProcessName): string {
  return `${role}-${index + 1}`;
}
