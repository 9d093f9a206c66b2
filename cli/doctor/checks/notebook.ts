import type { Read } from '../facts/facts.ts';
import { type Area, type Finding, type FindingDetails, type Fix, fix } from './finding.ts';

type Note = (what: string, impact: string, fix: Fix | string, more?: FindingDetails) => void;

/** Collects the findings of one area. */
export type Notebook = ReturnType<typeof createNotebook>;

export function createNotebook(area: Area) {
  const findings: Finding[] = [];
  const seen: string[] = [];
  const unseen: string[] = [];
  const add =
    (severity: Finding['severity']): Note =>
    (what, impact, todo, more = {}) => {
      findings.push({ area, severity, what, impact, fix: typeof todo === 'string' ? fix(todo) : todo, ...more });
    };
  return {
    error: add('error'),
    warning: add('warning'),
    seen: (text: string) => void seen.push(text),
    /** Records a check that was not possible, and why. */
    unseen: (text: string) => void unseen.push(text),
    /** The value, or undefined after a note that it could not be read. */
    value<T>(read: Read<T>, what: string): T | undefined {
      if (read.missing === undefined) return read.value;
      unseen.push(read.missing === 'forbidden' ? `${what} (you may not read them)` : `${what} (there are none)`);
      return undefined;
    },
    report: { area, findings, seen, unseen },
  };
}
