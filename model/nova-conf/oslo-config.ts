import { ParseError } from '../errors.ts';

/** The value of each option by section, from the last file that sets it. */
export type OsloConfig = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface ConfigFile {
  /** Name of the file, for messages. */
  readonly name: string;
  readonly text: string;
}

/**
 * Parses configuration files as oslo.config does: sections, `name = value` or `name: value`, comments on separate lines
 * with `#` or `;`, and values that continue on lines with a leading blank. Later files take precedence for each option.
 *
 * Section names are case-insensitive, except DEFAULT. References to other options (`$name`) stay unchanged: only the
 * reader of an option knows whether it may contain one.
 *
 * Source: oslo.config 9.0, iniparser.py and cfg.py.
 *
 * @throws ParseError with the file, the line and the expected syntax
 */
export function parseOsloConfig(files: readonly ConfigFile[]): OsloConfig {
  const sections = new Map<string, Map<string, string>>();
  for (const { name, text } of files) {
    const reader = new Reader(name, sections);
    for (const [index, line] of text.split(/\r\n|\r|\n/).entries()) reader.read(line.trimEnd(), index + 1);
  }
  return sections;
}

/** The effective value of an option; undefined if no file sets it. */
export function optionOf(config: OsloConfig, section: string, option: string): string | undefined {
  return config.get(sectionKey(section))?.get(option);
}

/** The key of a section in `OsloConfig`. */
export function sectionKey(name: string): string {
  return name === 'DEFAULT' ? name : name.toLowerCase();
}

/** Parses a file line by line; sections accumulate over all files. */
class Reader {
  readonly #file: string;
  readonly #sections: Map<string, Map<string, string>>;
  #section: Map<string, string> | undefined;
  /** The option that the next line may continue. */
  #option: string | undefined;

  constructor(file: string, sections: Map<string, Map<string, string>>) {
    this.#file = file;
    this.#sections = sections;
  }

  read(line: string, number: number): void {
    try {
      if (line === '' || line[0] === '#' || line[0] === ';') this.#option = undefined;
      else if (line[0] === ' ' || line[0] === '\t') this.#goOn(line);
      else if (line[0] === '[') this.#begin(line);
      else this.#assign(line);
    } catch (error) {
      if (!(error instanceof Unexpected)) throw error;
      throw new ParseError(`${this.#file}, line ${number}:`, line.trim(), error.message);
    }
  }

  #goOn(line: string): void {
    if (this.#section === undefined || this.#option === undefined) {
      throw new Unexpected('a line that begins with a blank continues the value above it, and there is none');
    }
    this.#section.set(this.#option, `${this.#section.get(this.#option)}\n${line.trimStart()}`);
  }

  #begin(line: string): void {
    if (!line.endsWith(']') || line.length < 3) throw new Unexpected('a section is its name in brackets, as [neutron]');
    const key = sectionKey(line.slice(1, -1));
    this.#option = undefined;
    this.#section = this.#sections.get(key) ?? new Map();
    this.#sections.set(key, this.#section);
  }

  #assign(line: string): void {
    const at = line.search(/[=:]/);
    if (at < 0) throw new Unexpected('neither a section nor name = value');
    if (this.#section === undefined) throw new Unexpected('it precedes the first [section]');
    const option = line.slice(0, at).trim();
    if (option === '') throw new Unexpected('the option has no name');
    this.#option = option;
    this.#section.set(option, unquoted(line.slice(at + 1).trim()));
  }
}

/** A syntax error in a line whose number the caller adds. */
class Unexpected extends Error {}

/** Removes one pair of quotes around the first line of a value. */
function unquoted(value: string): string {
  const quote = value[0];
  return (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}
