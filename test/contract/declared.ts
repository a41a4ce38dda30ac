/**
 * Checks an OpenAPI document: each answer must be declared and match its schema, and each declared error must occur.
 */

import { readFileSync } from "node:fs";

import { expect } from "vitest";
import { z } from "zod";

type Problem = { readonly allOf: readonly [unknown, { readonly properties: { readonly error: { readonly enum: readonly string[] } } }] };
type Response = {
  readonly $ref?: string;
  readonly headers?: object;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
};
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
};

/**
 * `body`: undefined unless it is JSON. With `headers` the declared headers are checked, and answers that are not JSON
 * too.
 */
type Answered = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly body: object;
  readonly headers?: Headers;
};

const JSON_TYPE = "application/json";

export class Declared {
  readonly #document: Document;
  /** Declared errors by name. An error that several operations share counts for all of them. */
  readonly #met = new Set<string>();

  constructor(file: URL) {
    this.#document = JSON.parse(readFileSync(file, "utf8")) as Document;
  }

  expect({ method, path, status, body, headers }: Answered): void {
    const template = Object.keys(this.#document.paths).find((each) => new RegExp(`^${each.replace(/\{\w+\}/g, "[^/]+")}$`).test(path));
    const declared = this.#document.paths[template ?? ""]?.[method.toLowerCase()]?.responses[status];
    const what = `${method} ${path} ${status}: ${JSON.stringify(body)}`;
    expect(declared, `${what} is declared`).toBeDefined();
    const response = this.#resolved(declared) as Response;
    if (headers !== undefined)
      expect(
        Object.keys(response.headers ?? {}).filter((name) => !headers.has(name)),
        `declared headers that are missing: ${what}`,
      ).toEqual([]);
    if (response.content === undefined) return;

    const type = headers?.get("content-type") ?? JSON_TYPE;
    const content = response.content[type];
    expect(content, `${type} is declared: ${what}`).toBeDefined();
    if (type !== JSON_TYPE) return;
    const shape = z.fromJSONSchema(content!.schema as Parameters<typeof z.fromJSONSchema>[0]);
    expect(shape.safeParse(body).error?.issues, what).toBeUndefined();
    if (!("error" in body)) return;
    const errors = this.#errorsOf(declared!); // zod ignores `properties` of a schema without `type`, so the shape accepts every error.
    if (errors.length > 0) expect(errors, what).toContain(body.error);
    this.#met.add(`${declared!.$ref ?? `${method.toLowerCase()} ${template} ${status}`} ${String(body.error)}`);
  }

  /** Returns the declared errors that did not occur. */
  get unmet(): string[] {
    const operations = Object.entries(this.#document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { responses }]) => ({ path, method, responses })),
    );
    const declared = operations.flatMap(({ path, method, responses }) =>
      Object.entries(responses).flatMap(([status, response]) =>
        this.#errorsOf(response).map((error) => `${response.$ref ?? `${method} ${path} ${status}`} ${error}`),
      ),
    );
    return [...new Set(declared)].filter((error) => !this.#met.has(error));
  }

  #errorsOf(response: Response): readonly string[] {
    const { content } = this.#resolved(response) as Response;
    const schema = content?.[JSON_TYPE]?.schema as Problem | undefined;
    return schema?.allOf?.[1].properties.error.enum ?? [];
  }

  /** The schema with its references resolved. */
  #resolved(part: unknown): unknown {
    if (Array.isArray(part)) return part.map((each) => this.#resolved(each));
    if (typeof part !== "object" || part === null) return part;
    const { $ref, ...rest } = part as Record<string, unknown>;
    if (typeof $ref === "string")
      return this.#resolved(
        $ref
          .split("/")
          .slice(1)
          .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], this.#document),
      );
    return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, this.#resolved(value)]));
  }
}
