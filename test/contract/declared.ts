/** Holds an OpenAPI document true: each answer has to be declared there and fit its schema, each declared error has to be met. */

import { readFileSync } from "node:fs";

import { expect } from "vitest";
import { z } from "zod";

type Problem = { readonly allOf: readonly [unknown, { readonly properties: { readonly error: { readonly enum: readonly string[] } } }] };
type Response = { readonly $ref?: string; readonly content?: { readonly "application/json"?: { readonly schema: object } } };
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>>>; readonly components: Readonly<Record<string, Readonly<Record<string, object>>>> };

export type Answered = { readonly method: string; readonly path: string; readonly status: number; readonly body: object };

export class Declared {
  readonly #document: Document;
  /** As the document has them: those that several operations share are met by any of them. */
  readonly #met = new Set<string>();

  constructor(file: URL) {
    this.#document = JSON.parse(readFileSync(file, "utf8")) as Document;
  }

  expect({ method, path, status, body }: Answered): void {
    const template = Object.keys(this.#document.paths).find((each) => new RegExp(`^${each.replace(/\{\w+\}/g, "[^/]+")}$`).test(path));
    const declared = this.#document.paths[template ?? ""]?.[method.toLowerCase()]?.responses[status];
    expect(declared, `${method} ${path} declares ${status}`).toBeDefined();
    const { content } = this.#resolved(declared) as Response;
    const shape = z.fromJSONSchema(this.#resolved(content!["application/json"]!.schema) as Parameters<typeof z.fromJSONSchema>[0]);
    expect(shape.safeParse(body).error?.issues, `${method} ${path} ${status}: ${JSON.stringify(body)}`).toBeUndefined();
    if ("error" in body) this.#met.add(`${declared!.$ref ?? `${method.toLowerCase()} ${template} ${status}`} ${String(body.error)}`);
  }

  /** Errors that are declared and were not met. */
  get unmet(): string[] {
    const operations = Object.entries(this.#document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, { responses }]) => ({ path, method, responses })));
    const declared = operations.flatMap(({ path, method, responses }) => Object.entries(responses).flatMap(([status, response]) => this.#errorsOf(response).map((error) => `${response.$ref ?? `${method} ${path} ${status}`} ${error}`)));
    return [...new Set(declared)].filter((error) => !this.#met.has(error));
  }

  #errorsOf(response: Response): readonly string[] {
    const { content } = this.#resolved(response) as Response;
    const schema = content?.["application/json"]?.schema as Problem | undefined;
    return schema?.allOf?.[1].properties.error.enum ?? [];
  }

  /** With its references written out. */
  #resolved(part: unknown): unknown {
    if (Array.isArray(part)) return part.map((each) => this.#resolved(each));
    if (typeof part !== "object" || part === null) return part;
    const { $ref, ...rest } = part as Record<string, unknown>;
    if (typeof $ref === "string") return this.#resolved($ref.split("/").slice(1).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], this.#document));
    return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, this.#resolved(value)]));
  }
}
