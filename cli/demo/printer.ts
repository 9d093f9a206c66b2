import { outputWidth, print, printLines } from '../support/output.ts';
import { joinParts, type Line, paint, wrap } from '../support/terminal.ts';

interface StepReport {
  readonly step: string;
  readonly succeeded: boolean;
  readonly seconds: number;
  readonly data: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

export type Printer = ReturnType<typeof createPrinter>;

const width = () => Math.max(40, outputWidth());

const dimmed = (text: string): Line[] => wrap(`… ${text}`, width(), '  ', '    ').map((line) => [paint('dim', line)]);

/** A line with parts is made for a screen: a map, or a table. */
const indented = (line: Line): Line[] =>
  typeof line === 'string' && !line.startsWith(' ') ? wrap(line, width(), '  ') : [joinParts(['  ', line])];

export function createPrinter(json: boolean) {
  const reports: StepReport[] = [];
  const faults = new Set<string>();
  const printText = (...lines: Line[]) => {
    if (!json) printLines(lines);
  };
  return {
    title: (text: string) => printText('', [paint('bold', text)]),
    progress: (text: string) => printText(...dimmed(text)),
    /** Once: what fails is tried again. */
    fault(text: string) {
      if (faults.has(text)) return;
      faults.add(text);
      printText(...dimmed(text));
    },
    lines: (lines: readonly Line[]) => printText(...lines.flatMap(indented)),
    step(report: StepReport) {
      reports.push(report);
      const time = paint('dim', `(${report.seconds.toFixed(1)} s)`);
      if (report.succeeded) printText(['  ', paint('green', '✔'), ' succeeded ', time]);
      else printText(['  ', paint('red', '✘'), ` ${report.error ?? 'failed'} `, time]);
    },
    end(succeeded: boolean, seconds: number, logs: string | undefined) {
      if (json) {
        return void print('json', { succeeded: succeeded, seconds, logs, steps: reports }, { text: () => [] });
      }
      const count = reports.filter((report) => report.succeeded).length;
      const result = paint(succeeded ? 'green' : 'red', `${count} of ${reports.length} steps succeeded`);
      printText('', [result, ` in ${seconds.toFixed(1)} s`]);
      if (logs !== undefined) printText(`the daemons’ logs are in ${logs}`);
    },
  };
}
