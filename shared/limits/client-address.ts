/**
 * The address for which a connection is counted. An IPv6 customer has a /64 network, so the network is counted. The
 * machine's own address is not counted, because behind a local proxy all clients would share it.
 */

/** The common part of connections from one place: an IPv4 address, or the first half of an IPv6 address. */
export type ClientAddress = string & { readonly [address]: true };
declare const address: unique symbol;

/**
 * `peer`: the address of the socket. `forwarded`: the balancer's header, if one is configured and trusted; its last
 * entry is the balancer's own.
 */
export function clientAddressOf(peer: string, forwarded: string): ClientAddress | undefined {
  const named = forwarded.slice(forwarded.lastIndexOf(",") + 1).trim();
  if (named !== "") return placeOf(named);
  const place = placeOf(peer);
  return place === "0:0:0:0" || place?.startsWith("127.") ? undefined : place; // 0:0:0:0 includes ::1, the loopback.
}

const BYTE = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
/** With or without a port. */
const V4 = new RegExp(`^(${BYTE}(?:\\.${BYTE}){3})(?::\\d+)?$`);

/** Undefined: the text is not an address. */
function placeOf(text: string): ClientAddress | undefined {
  const bare = text.replace(/^\[(.*)\](?::\d+)?$/, "$1").replace(/%.*$/, "");
  const mapped = /^(?:::ffff:|(?:0{1,4}:){5}ffff:)(.+)$/i.exec(bare)?.[1] ?? bare;
  const v4 = V4.exec(mapped)?.[1] ?? mappedInHex(mapped, bare);
  if (v4 !== undefined) return v4 as ClientAddress;
  const groups = groupsOf(bare);
  return groups === undefined
    ? undefined
    : (groups
        .slice(0, 4)
        .map((group) => group.toString(16))
        .join(":") as ClientAddress);
}

/** `::ffff:0a00:0001` is 10.0.0.1, as a socket's own text may have it. */
function mappedInHex(mapped: string, bare: string): string | undefined {
  const halves = mapped === bare ? null : /^([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(mapped);
  if (halves === null) return undefined;
  const [high, low] = [Number.parseInt(halves[1]!, 16), Number.parseInt(halves[2]!, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

function groupsOf(text: string): number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head = [], tail = []] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - head.length - tail.length;
  if (halves.length === 1 ? missing !== 0 : missing < 1) return undefined;
  const groups = [...head, ...Array<string>(missing).fill("0"), ...tail];
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? groups.map((group) => Number.parseInt(group, 16)) : undefined;
}
