/** A message as nats.js gives it to the adapters: the fields that they read, and the method to respond. */

import type { Delivered } from "./sim-nats.ts";

/** The connection that received the message. */
type Answers = { publish(subject: string, data: Uint8Array): void };

export class SimMsg {
  /** Id of the subscription that received the message. */
  readonly sid: number;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: { readonly code: number; readonly description: string; get(name: string): string } | undefined;
  readonly reply: string | undefined;
  readonly #connection: Answers;

  constructor(sid: number, { subject, data, reply, code, headers }: Delivered, connection: Answers) {
    this.sid = sid;
    this.subject = subject;
    this.data = data;
    if (code !== undefined || headers !== undefined)
      this.headers = { code: code ?? 0, description: code === undefined ? "" : "no responders", get: (name) => headers?.get(name) ?? "" };
    this.reply = reply;
    this.#connection = connection;
  }

  json<Value>(): Value {
    return JSON.parse(new TextDecoder().decode(this.data)) as Value;
  }

  string(): string {
    return new TextDecoder().decode(this.data);
  }

  respond(data: Uint8Array): boolean {
    if (this.reply !== undefined) this.#connection.publish(this.reply, data);
    return this.reply !== undefined;
  }
}
