/** Messages and bytes between nats-server and its clients, from the counters of its monitoring. */

type Traffic = Readonly<Record<"toNats" | "fromNats" | "bytesToNats" | "bytesFromNats", number>>;
export type NatsTraffic = Readonly<Record<string, Traffic>>;

type Connz = {
  readonly connections: readonly (Readonly<Record<"in_msgs" | "out_msgs" | "in_bytes" | "out_bytes", number>> & {
    readonly name?: string;
  })[];
};

/** Since their start, of the connections with the same `groupOf`, which receives a connection's name. */
export async function natsTraffic(monitorPort: number, groupOf: (name: string) => string): Promise<NatsTraffic> {
  const { connections } = (await (await fetch(`http://127.0.0.1:${monitorPort}/connz?limit=1000`)).json()) as Connz;
  const groups: Record<string, Record<keyof Traffic, number>> = {};
  for (const { name = "", in_msgs, out_msgs, in_bytes, out_bytes } of connections) {
    const sum = (groups[groupOf(name)] ??= { toNats: 0, fromNats: 0, bytesToNats: 0, bytesFromNats: 0 });
    sum.toNats += in_msgs;
    sum.fromNats += out_msgs;
    sum.bytesToNats += in_bytes;
    sum.bytesFromNats += out_bytes;
  }
  return groups;
}

/** A connection's name begins with its role; a room server's with `rs-`. */
export function roleOfConnection(name: string): string {
  return /^[a-z]+(?:-service)?/.exec(name)?.[0].replace(/^rs$/, "room server") ?? "others";
}
