/**
 * Named events with `on`, `once` and `off`, as Yjs providers have them. A listener that throws does not stop the
 * others. A listener that is removed during an event is not called any more. Rules EVE1 to EVE4.
 */

import { assert } from "../shared/assert.ts";

type Listener<Arguments extends readonly unknown[]> = (...args: Arguments) => void;

/** `EventMap`: the arguments of each event's listeners. */
export class Events<EventMap extends { [Name in keyof EventMap]: readonly unknown[] }> {
  /** `once`: remove the listener before its first call. */
  readonly #listeners = new Map<keyof EventMap, Map<Listener<never>, { readonly once: boolean }>>();
  readonly #reportError: (error: unknown) => void;

  constructor(reportError: (error: unknown) => void) {
    this.#reportError = reportError;
  }

  on<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    this.#add(name, listener, { once: false });
  }

  once<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    this.#add(name, listener, { once: true });
  }

  off<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  has(name: keyof EventMap): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends keyof EventMap>(name: Name, ...args: EventMap[Name]): void {
    for (const [listener, how] of Array.from(this.#listeners.get(name) ?? [])) {
      if (this.#listeners.get(name)?.get(listener) !== how) continue; // Another listener removed it.
      if (how.once) this.#listeners.get(name)?.delete(listener);
      try {
        (listener as Listener<EventMap[Name]>)(...args);
      } catch (error) {
        this.#reportError(error); // The application's own error: code of this package does not throw here.
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }

  #add<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>, how: { readonly once: boolean }): void {
    assert(typeof listener === "function", `the listener of "${String(name)}" must be a function, not ${typeof listener}`);
    const listeners = this.#listeners.get(name) ?? new Map<Listener<never>, { readonly once: boolean }>();
    this.#listeners.set(name, listeners.set(listener, how));
  }
}
