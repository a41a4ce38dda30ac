/**
 * Declares and reads settings. Each setting is declared once, with its parser, default and meaning; `--help`,
 * docs/SETTINGS.md and all error messages come from that declaration. The setting `backlogBytesMax` is read from
 * `--backlog-bytes-max` or `COROOM_BACKLOG_BYTES_MAX`, and the flag wins. An empty flag or variable, and a variable of
 * spaces, counts as absent. A flag of spaces is refused, because the default would hide a mistake.
 */

export type Setting<Value> = {
  readonly parse: (raw: string) => Value;
  /** Absent: the setting is required. */
  readonly fallback?: Value;
  /** The fallback as an operator writes it, if it is not a text, a number or a list of these. */
  readonly shownAs?: string;
  readonly meaning: string;
  /** An operator decides this setting. Help and docs/SETTINGS.md show it first. All others are under "Advanced". */
  readonly basic?: true;
  /** The value is a secret or may contain one. No message shows it, and no parser's message shows any value. */
  readonly secret?: true;
  /** The value belongs to one call of a command, for example a user name. It is never read from a variable. */
  readonly flagOnly?: true;
  /** The flag may be given several times. The value is the list of all that `parse` returns. */
  readonly isRepeatable?: true;
  /** Made by `constant`. */
  readonly isConstant?: true;
};
export type Settings = Record<string, Setting<unknown>>;
export type Values<S extends Settings> = { readonly [Key in keyof S]: S[Key] extends Setting<infer Value> ? Value : never };

/**
 * A tuning value that can be chosen only with knowledge of the source. It is part of a role's configuration, so that
 * tests can vary it as a flag of `readSettings`. No variable sets it, the command line refuses it, and no list shows
 * it.
 */
export function constant(value: number): Setting<number> & { readonly fallback: number } {
  return { parse: positiveInteger, fallback: value, meaning: "", isConstant: true };
}

/** All settings but the constants, in the order of their declaration. */
export function readableSettings(settings: Settings): [string, Setting<unknown>][] {
  return Object.entries(settings).filter(([, { isConstant }]) => isConstant !== true);
}

export const text = (raw: string): string => raw;

/** For case-insensitive names, such as HTTP headers. */
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

/** For a repeatable flag whose values may contain commas and spaces. */
export const single = (raw: string): readonly string[] => [raw];

export function oneOf<const Choices extends readonly string[]>(...choices: Choices): (raw: string) => Choices[number] {
  return (raw) => {
    if (!choices.includes(raw)) throw new SettingError(`must be one of ${choices.join(", ")}`);
    return raw;
  };
}

/** A setting's value cannot be used. `readSettings` collects the SettingErrors of all parsers. */
export class SettingError extends Error {
  override readonly name = "SettingError";
}

/** Throws one SettingError that lists every bad setting, so that an operator corrects all of them at once. */
export function readSettings<const S extends Settings>(settings: S, given: SettingSources): Values<S> {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, setting] of Object.entries(settings)) {
    const typed = given.flags[name];
    const isFlagOnly = setting.flagOnly === true || setting.isConstant === true;
    const raws = [typed ?? (isFlagOnly ? undefined : given.env[envName(name)]) ?? ""].flat();
    if (raws.length > 1 && setting.isRepeatable !== true) {
      problems.push(`${flagName(name)} is given twice. Give it once; a list is one value with commas (${setting.meaning})`);
      continue;
    }
    const raw = raws.find((each) => each.trim() === "") ?? raws.join(" and ");
    if (raw.trim() === "") {
      if (typed !== undefined && typed !== "") {
        problems.push(`${flagName(name)} contains only spaces. Give it a value, or leave it out (${setting.meaning})`);
        continue;
      }
      if ("fallback" in setting) values[name] = setting.fallback;
      else problems.push(`${setting.flagOnly === true ? flagName(name) : envName(name)} is not set: ${setting.meaning}`);
      continue;
    }
    try {
      values[name] = raws.length === 1 ? setting.parse(raws[0]!) : raws.flatMap((each) => setting.parse(each));
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

/** The sources of settings: flags by setting name (camelCase; a list if one is given several times), and the process environment. */
export type SettingSources = {
  readonly flags: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly env: Readonly<Record<string, string | undefined>>;
};

export function envName(setting: string): string {
  return `COROOM_${setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function flagName(setting: string): string {
  return `--${setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** Whether a part of a URL, such as a password, is percent-encoded correctly. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}
