/**
 * Messages as JetStream answers a direct get: where each stood in its stream is said by its headers. They are read
 * from the bytes that lie before the data, for whoever reads a log reads them of every record, and the client's own
 * object for headers takes four times as long. Where they are not found there, that object is asked.
 */

import { DirectMsgHeaders as Header } from "@nats-io/jetstream";

import type { UnixMillis } from "../ids.ts";
import type { Msg } from "./nats.ts";

/** `pending`: how many more there are behind it, of those that were asked for. */
export type StoredMessage = {
  readonly subject: string;
  readonly streamSeq: number;
  readonly time: UnixMillis;
  readonly pending: number;
  readonly data: Uint8Array;
};

const HEADERS_BYTES_MAX = 512;

export function storedIn(message: Pick<Msg, "data" | "headers">): StoredMessage {
  const { data } = message;
  const text = headersBefore(data);
  const header = (name: string): string => (text === undefined ? (message.headers?.get(name) ?? "") : headerIn(text, name));
  return {
    subject: header(Header.Subject),
    streamSeq: Number(header(Header.Sequence)),
    time: Date.parse(header(Header.TimeStamp)) as UnixMillis,
    pending: Number(header(Header.NumPending)),
    data,
  };
}

/** A message arrives in one piece, of which the client hands out views. No header's value has a line's end in it. */
function headersBefore({ buffer, byteOffset }: Uint8Array): string | undefined {
  const length = Math.min(byteOffset, HEADERS_BYTES_MAX);
  const text = Buffer.from(buffer, byteOffset - length, length).toString("latin1");
  const start = text.lastIndexOf("NATS/1.0\r\n");
  return start >= 0 && text.endsWith("\r\n\r\n") ? text.slice(start) : undefined;
}

/** Empty where there is none. */
function headerIn(text: string, name: string): string {
  const line = text.indexOf(`\r\n${name}: `);
  if (line < 0) return "";
  const value = line + name.length + 4;
  return text.slice(value, text.indexOf("\r\n", value));
}
