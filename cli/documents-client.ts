/**
 * Requests for documents to a gateway. A request that the gateway cannot answer right now is repeated after the pause
 * that the answer names, five times. Every other refusal is a DocumentError with the gateway's message.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { z } from "zod";

import { fetchFromGateway, type GatewayRequest } from "./ask-gateway.ts";

/** `code`: the gateway's short name of the refusal, such as `no-room`. Empty: no gateway refused. */
export class DocumentError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, message: string, code = "") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** `seq`: the document's last edit, or the written one. */
type DocumentReply = {
  readonly status: number;
  readonly bytes: Uint8Array;
  readonly seq: number | undefined;
  readonly etag: string;
};

const Refusal = z.looseObject({ error: z.string(), message: z.string() });
const TRIES_MAX = 6;
const PAUSE_SECONDS = "1";
/** 202: the room is deleted, and its data is still being removed. */
const DONE: ReadonlySet<number> = new Set([200, 202, 304]);
const REPEATED: ReadonlySet<number> = new Set([429, 503]);

export class DocumentsClient {
  readonly #url: string;
  readonly #token: () => Promise<string>;

  constructor(url: string, token: () => Promise<string>) {
    this.#url = url;
    this.#token = token;
  }

  /**
   * `path`: after `/v1/rooms`. Resolves with the status 200, 202 or 304. Throws DocumentError for a refusal, and SettingError
   * if no gateway answers.
   */
  async ask(path: string, request: GatewayRequest = {}): Promise<DocumentReply> {
    const url = new URL(`/v1/rooms${path}`, this.#url);
    for (let tries = 1; ; tries += 1) {
      const { reply, pauseSeconds } = await fetchFromGateway(url, await this.#token(), request, replyOf);
      if (DONE.has(reply.status)) return reply;
      if (!REPEATED.has(reply.status) || tries === TRIES_MAX) throw refusalFrom(reply.status, new TextDecoder().decode(reply.bytes));
      await sleep(1_000 * pauseSeconds);
    }
  }
}

async function replyOf(response: Response): Promise<{ readonly reply: DocumentReply; readonly pauseSeconds: number }> {
  const { status, headers } = response;
  const seq = headers.get("x-coroom-seq");
  const bytes = new Uint8Array(await response.arrayBuffer());
  return {
    reply: { status, bytes, seq: seq === null ? undefined : Number(seq), etag: headers.get("etag") ?? "" },
    pauseSeconds: Number(headers.get("retry-after") ?? PAUSE_SECONDS),
  };
}

function refusalFrom(status: number, text: string): DocumentError {
  try {
    const { error, message } = Refusal.parse(JSON.parse(text));
    return new DocumentError(status, message, error);
  } catch {
    return new DocumentError(status, `the server answered HTTP ${status}. Set --url to the address of a gateway`); // No gateway's error.
  }
}
