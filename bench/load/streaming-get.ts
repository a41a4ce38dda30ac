/**
 * An HTTP GET with little overhead, because the load shares the machine with the measured servers. It uses a separate
 * connection and one read buffer for all connections, and reads only a head and a body of the announced length.
 */

import { connect } from "node:net";

export type ResponseHead = { readonly status: number; readonly headers: Readonly<Record<string, string>> };
/** `receiveBytes` borrows each part of the body for the call. */
type ResponseListener = { receiveHead(head: ResponseHead): void; receiveBytes(bytes: Uint8Array): void };

/** The connection ended before the response did. */
export class CutOff extends Error {}

const HEAD_END = "\r\n\r\n";
const EMPTY = Buffer.alloc(0);
const sharedBuffer = Buffer.allocUnsafe(1024 ** 2); // Each read is consumed before the next.

/** Resolves when the whole body has arrived. */
export function streamingGet(url: URL, headers: Readonly<Record<string, string>>, listener: ResponseListener): Promise<void> {
  return new Promise((resolve, reject) => {
    let head: Buffer | undefined = EMPTY;
    let missing = 0;

    const receive = (bytes: Buffer): void => {
      if (head === undefined) return receiveBody(bytes);
      head = head.byteLength === 0 ? bytes : Buffer.concat([head, bytes]);
      const end = head.indexOf(HEAD_END);
      if (end === -1) return void (head = Buffer.from(head)); // The buffer is only borrowed.
      const answer = headOf(head.toString("latin1", 0, end));
      const rest = head.subarray(end + HEAD_END.length);
      head = undefined;
      missing = Number(answer.headers["content-length"]);
      listener.receiveHead(answer);
      receiveBody(rest);
    };
    const receiveBody = (bytes: Buffer): void => {
      missing -= bytes.byteLength;
      listener.receiveBytes(bytes);
      if (missing > 0) return;
      resolve();
      socket.destroy();
    };
    const take = (bytes: Buffer): boolean => {
      try {
        receive(bytes);
      } catch (error) {
        socket.destroy(error as Error); // The listener failed, and this request fails with it.
      }
      return true;
    };

    const socket = connect({
      host: url.hostname,
      port: Number(url.port),
      onread: { buffer: sharedBuffer, callback: (count) => take(sharedBuffer.subarray(0, count)) },
    });
    const lines = [
      `GET ${url.pathname}${url.search} HTTP/1.1`,
      `host: ${url.host}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ];
    socket.once("connect", () => socket.write(`${lines.join("\r\n")}${HEAD_END}`));
    socket.once("error", (cause) => reject("code" in cause ? new CutOff(`${url.href}: the connection broke`, { cause }) : cause));
    socket.once("close", () =>
      reject(new CutOff(`${url.href}: cut off ${head === undefined ? `with ${missing} bytes missing` : "before any answer"}`)),
    );
  });
}

function headOf(text: string): ResponseHead {
  const [first = "", ...lines] = text.split("\r\n");
  const headers = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()] as const);
  return { status: Number(first.split(" ")[1]), headers: Object.fromEntries(headers) };
}
