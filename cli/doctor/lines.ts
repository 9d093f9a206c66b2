import { remedyText } from '../../model/vm-state/remedy.ts';
import { joinParts, type Line, paint, wrap } from '../support/terminal.ts';
import { type AreaReport, count, type Finding } from './checks/finding.ts';

const MARKS = { error: { mark: '✘', style: 'red' }, warning: { mark: '!', style: 'yellow' } } as const;

/**
 * The diagnosis for people: findings first, then a line for each area without a fault.
 * @param findings one for each cause, most severe first
 * @param wide the names of all objects of each finding, and the checks of every area
 */
export function doctorLines(
  reports: readonly AreaReport[],
  findings: readonly Finding[],
  width: number,
  wide = false,
): Line[] {
  const columns = Math.max(40, Math.min(width, 120));
  const lines = findings.flatMap((finding): Line[] => {
    const { mark, style } = MARKS[finding.severity];
    const [first = '', ...more] = wrap(`${finding.area}: ${finding.what}`, columns - 2, '');
    return [
      [paint(style, mark), ` ${first}`],
      ...more.map((line) => `  ${line}`),
      ...wrap(`impact: ${finding.impact}`, columns, '    '),
      ...(wide && finding.objects?.length ? [['    objects: ', ...joinParts(finding.objects, ' ')]] : []),
      ...(finding.consequences ?? []).flatMap((one) => wrap(`also: ${one}`, columns, '    ')),
      ...wrap(`fix: ${remedyText(finding.fix)}`, columns, '    '),
      ...(finding.meanwhile === undefined ? [] : wrap(`meanwhile: ${remedyText(finding.meanwhile)}`, columns, '    ')),
      '',
    ];
  });
  for (const { area, findings: own, seen, unseen } of reports) {
    const ok = own.length === 0 && unseen.length === 0;
    if ((wide || own.length === 0) && seen.length > 0) {
      const mark = paint(own.length > 0 ? undefined : 'green', ok ? '✔' : '·');
      const [first = '', ...more] = wrap(`${area}: ${seen.join('; ')}`, columns, '  ');
      lines.push([mark, first.slice(1)], ...more);
    }
    if (unseen.length > 0) {
      const text = `${area}: not checked: ${[...new Set(unseen)].join(', ')}`;
      lines.push(...wrap(text, columns, '? ').map((line) => [paint('dim', line)]));
    }
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const summary =
    findings.length === 0
      ? 'no problems found'
      : `${count(errors, 'error')}, ${count(findings.length - errors, 'warning')}`;
  return [...lines, '', summary];
}
