/** Named events, as Yjs providers offer them: `on`, `once`, `off`. A listener that throws disturbs nobody else. */

type Listener<Arguments extends readonly unknown[]> = (...args: Arguments) => void;

/** `EventMap`: what each event's listeners are called with. */
export class Events<EventMap extends { [Name in keyof EventMap]: readonly unknown[] }> {
  readonly #listeners = new Map<keyof EventMap, Set<Listener<never>>>();
  readonly #reportError: (error: unknown) => void;

  constructor(reportError: (error: unknown) => void) {
    this.#reportError = reportError;
  }

  on<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    const listeners = this.#listeners.get(name);
    if (listeners === undefined) this.#listeners.set(name, new Set([listener]));
    else listeners.add(listener);
  }

  once<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    const onceOnly: Listener<EventMap[Name]> = (...args) => {
      this.off(name, onceOnly);
      listener(...args);
    };
    this.on(name, onceOnly);
  }

  off<Name extends keyof EventMap>(name: Name, listener: Listener<EventMap[Name]>): void {
    this.#listeners.get(name)?.delete(listener);
  }

  has(name: keyof EventMap): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0;
  }

  emit<Name extends keyof EventMap>(name: Name, ...args: EventMap[Name]): void {
    for (const listener of [...(this.#listeners.get(name) ?? [])] as Listener<EventMap[Name]>[]) {
      try {
        listener(...args);
      } catch (error) {
        this.#reportError(error); // The application's own; nothing of ours throws here.
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
