import { ParseError } from '../errors.ts';

/** The value of each option by section, as the last file that has it says. */
export type OsloConfig = ReadonlyMap<string, ReadonlyMap<string, string>>;

export interface ConfigFile {
  /** For messages. */
  readonly name: string;
  readonly text: string;
}

/**
 * Reads configuration files as oslo.config does: sections, `name = value` or `name: value`, comments on lines of their
 * own with `#` or `;`, values that continue on lines which begin with a blank. Later files win, option by option.
 *
 * A section is found whatever the case of its name, except DEFAULT. References to other options (`$name`) are left as
 * they are: only the reader of an option knows whether it may have one.
 *
 * Source: oslo.config 9.0, iniparser.py and cfg.py.
 *
 * @throws ParseError with file, line and what was expected there
 */
export function parseOsloConfig(files: readonly ConfigFile[]): OsloConfig {
  const sections = new Map<string, Map<string, string>>();
  for (const { name, text } of files) {
    const reader = new Reader(name, sections);
    for (const [index, line] of text.split(/\r\n|\r|\n/).entries()) reader.read(line.trimEnd(), index + 1);
  }
  return sections;
}

/** The value that counts; undefined where no file has the option. */
export function optionOf(config: OsloConfig, section: string, option: string): string | undefined {
  return config.get(sectionKey(section))?.get(option);
}

/** How a section is called in `OsloConfig`. */
export function sectionKey(name: string): string {
  return name === 'DEFAULT' ? name : name.toLowerCase();
}

/** Reads one file, line by line, into sections that other files may have begun. */
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

/** What is wrong with a line, before it is known which. */
class Unexpected extends Error {}

/** One pair of quotes around a value's first line is taken away. */
function unquoted(value: string): string {
  const quote = value[0];
  return (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}
