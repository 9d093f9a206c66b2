import { remedyText } from '../../model/vm-state/remedy.ts';
import { type Terminal, wrap } from '../support/terminal.ts';
import type { AreaReport, Finding } from './checks/finding.ts';

const MARKS = { error: { mark: '✘', style: 'red' }, warning: { mark: '!', style: 'yellow' } } as const;

/**
 * The diagnosis for people: findings first, then a line for each area without a fault.
 * @param findings one for each cause, most severe first
 * @param wide the names of all objects of each finding, and the checks of every area
 */
export function doctorLines(
  reports: readonly AreaReport[],
  findings: readonly Finding[],
  { paint, width }: Terminal,
  wide = false,
): string[] {
  const columns = Math.max(40, Math.min(width, 120));
  const lines = findings.flatMap((finding) => {
    const { mark, style } = MARKS[finding.severity];
    const [first = '', ...more] = wrap(`${finding.area}: ${finding.what}`, columns - 2, '');
    return [
      `${paint(style, mark)} ${first}`,
      ...more.map((line) => `  ${line}`),
      ...wrap(`impact: ${finding.impact}`, columns, '    '),
      ...(wide && finding.objects?.length ? [`    objects: ${finding.objects.join(' ')}`] : []),
      ...(finding.consequences ?? []).flatMap((one) => wrap(`also: ${one}`, columns, '    ')),
      ...wrap(`fix: ${remedyText(finding.fix)}`, columns, '    '),
      ...(finding.meanwhile === undefined ? [] : wrap(`meanwhile: ${remedyText(finding.meanwhile)}`, columns, '    ')),
      '',
    ];
  });
  for (const { area, findings: own, seen, unseen } of reports) {
    const ok = own.length === 0 && unseen.length === 0;
    if ((wide || own.length === 0) && seen.length > 0) {
      const mark = own.length > 0 ? '·' : paint('green', ok ? '✔' : '·');
      lines.push(...wrap(`${area}: ${seen.join('; ')}`, columns, `${mark} `, '  '));
    }
    if (unseen.length > 0) {
      const text = `${area}: not checked: ${[...new Set(unseen)].join(', ')}`;
      lines.push(...wrap(text, columns, '? ', '  ').map((line) => paint('dim', line)));
    }
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const summary =
    findings.length === 0
      ? 'no problems found'
      : `${errors} ${errors === 1 ? 'error' : 'errors'}, ${findings.length - errors} ${findings.length - errors === 1 ? 'warning' : 'warnings'}`;
  return [...lines, '', summary];
}
