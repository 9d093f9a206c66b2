import type { Read } from '../facts/facts.ts';
import type { Area, AreaReport, Finding } from './finding.ts';

/** Collects what one area's checks find. */
export interface Notebook {
  error(what: string, why: string, todo: string, objects?: readonly string[]): void;
  warning(what: string, why: string, todo: string, objects?: readonly string[]): void;
  /** Something that is in order. */
  seen(text: string): void;
  /** What was read, or undefined after a note that it could not be. */
  value<T>(read: Read<T>, what: string): T | undefined;
  readonly report: AreaReport;
}

export function createNotebook(area: Area): Notebook {
  const findings: Finding[] = [];
  const seen: string[] = [];
  const unseen: string[] = [];
  const add =
    (severity: Finding['severity']): Notebook['error'] =>
    (what, why, todo, objects) => {
      findings.push({ area, severity, what, why, do: todo, ...(objects !== undefined && { objects }) });
    };
  return {
    error: add('error'),
    warning: add('warning'),
    seen: (text) => void seen.push(text),
    value(read, what) {
      if (read.missing === undefined) return read.value;
      unseen.push(read.missing === 'forbidden' ? `${what} (you may not read them)` : `${what} (there are none)`);
      return undefined;
    },
    report: { area, findings, seen, unseen },
  };
}
