/**
 * Settings, each declared once: its parser, default and meaning. The name gives the rest:
 * `backlogBytesMax` is read from `--backlog-bytes-max` or `COROOM_BACKLOG_BYTES_MAX` (the flag wins).
 * `--help` and every error message come from the same declaration; an error names the flag or the variable that was given.
 * What is given empty is not given: a flag without a text stands for the default, a variable for nothing at all.
 */

export type Setting<Value> = {
  readonly parse: (raw: string) => Value;
  /** Absent: the setting must be given. */
  readonly fallback?: Value;
  /** The fallback as one would write it, where it is no text, number or list of these. */
  readonly shownAs?: string;
  readonly meaning: string;
  /** What is given is, or may hold, a secret: no message shows it. A parser's own messages show no value in any case. */
  readonly secret?: true;
  /** Of one call of a command, such as whom it is about: never read from a variable, which may mean something else. */
  readonly flagOnly?: true;
};
export type Settings = Record<string, Setting<unknown>>;
export type Values<S extends Settings> = { readonly [Key in keyof S]: S[Key] extends Setting<infer Value> ? Value : never };

export const text = (raw: string): string => raw;

/** For names that mean the same in any case, such as a header's. */
export const lowerCase = (raw: string): string => raw.trim().toLowerCase();

export function positiveInteger(raw: string): number {
  const value = Number(raw);
  if (!Number.isSafeInteger(value) || value <= 0) throw new SettingError("must be a positive whole number");
  return value;
}

export function wholeNumber(raw: string): number {
  const value = Number(raw);
  if (raw.trim() === "" || !Number.isSafeInteger(value) || value < 0) throw new SettingError("must be a whole number, 0 or more");
  return value;
}

export function port(raw: string): number {
  const value = Number(raw);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) throw new SettingError("must be a port, 0 (any free one) to 65535");
  return value;
}

export function flag(raw: string): boolean {
  if (raw === "true" || raw === "1") return true;
  if (raw === "false" || raw === "0") return false;
  throw new SettingError("must be true or false");
}

export function list(raw: string): readonly string[] {
  return raw
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

export function oneOf<const Choices extends readonly string[]>(...choices: Choices): (raw: string) => Choices[number] {
  return (raw) => {
    if (!choices.includes(raw)) throw new SettingError(`must be one of ${choices.join(", ")}`);
    return raw;
  };
}

/** A setting's value cannot be used. Where parsers throw it, `readSettings` collects them all. */
export class SettingError extends Error {
  override readonly name = "SettingError";
}

/** Reports every bad setting at once, so that a misconfigured process is fixed in one round. */
export function readSettings<const S extends Settings>(settings: S, given: Given): Values<S> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, setting] of Object.entries(settings)) {
    const typed = given.flags[name];
    const raw = typed ?? (setting.flagOnly === true ? undefined : given.env[envName(name)]) ?? "";
    if (raw.trim() === "") {
      if ("fallback" in setting) values[name] = setting.fallback;
      else problems.push(`${setting.flagOnly === true ? flagName(name) : envName(name)} is not set: ${setting.meaning}`);
      continue;
    }
    try {
      values[name] = setting.parse(raw);
    } catch (error) {
      if (!(error instanceof SettingError)) throw error;
      problems.push(
        `${typed === undefined ? envName(name) : flagName(name)}${setting.secret === true ? "" : `=${raw}`} ${error.message} (${setting.meaning})`,
      );
    }
  }
  if (problems.length > 0) throw new SettingError(`bad configuration:\n  ${problems.join("\n  ")}`);
  return values as Values<S>;
}

/** What the process was given: flags by setting name (camelCase) and the environment as it is. */
export type Given = {
  readonly flags: Readonly<Record<string, string | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
};

export function envName(setting: string): string {
  return `COROOM_${setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function flagName(setting: string): string {
  return `--${setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
