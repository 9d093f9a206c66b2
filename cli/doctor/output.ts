import { remedyLines } from '../../diagnosis/remedy.ts';
import { countText } from '../../model/amounts.ts';
import type { DpuDiagnosis } from '../../model/lease/diagnose.ts';
import { joinParts, type Line, paint, remedyParagraph, wrap } from '../support/terminal.ts';
import type { AreaReport, DoctorFinding } from './checks/finding.ts';

/** The data in docs/schemas/doctor.json. */
export function doctorData(
  reports: readonly AreaReport[],
  findings: readonly DoctorFinding[],
  dpus: readonly DpuDiagnosis[] | undefined,
) {
  return { ok: findings.length === 0, findings, areas: reports.map(({ findings: _, ...rest }) => rest), dpus };
}

const MARKS = { error: { mark: '✘', style: 'red' }, warning: { mark: '!', style: 'yellow' } } as const;

const isChecked = ({ findings, unseen }: AreaReport) => findings.length === 0 && unseen.length === 0;

/** Findings, then a line for each area without a fault. */
export function areaLines(
  reports: readonly AreaReport[],
  findings: readonly DoctorFinding[],
  width: number,
  wide: boolean,
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
      ...(finding.consequences ?? []).flatMap((consequence) => wrap(`also: ${consequence}`, columns, '    ')),
      ...remedyParagraph(remedyLines(finding.fix), columns, '    fix: '),
      ...(finding.meanwhile === undefined
        ? []
        : remedyParagraph(remedyLines(finding.meanwhile), columns, '    meanwhile: ')),
      '',
    ];
  });
  for (const report of reports) {
    const { area, findings: areaFindings, seen, unseen } = report;
    if ((wide || areaFindings.length === 0) && seen.length > 0) {
      const mark = paint(areaFindings.length > 0 ? undefined : 'green', isChecked(report) ? '✔' : '·');
      const [first = '', ...more] = wrap(`${area}: ${seen.join('; ')}`, columns, '  ');
      lines.push([mark, first.slice(1)], ...more);
    }
    if (unseen.length > 0) {
      const text = `${area}: not checked: ${[...new Set(unseen)].join(', ')}`;
      lines.push(...wrap(text, columns, '? ').map((line) => [paint('dim', line)]));
    }
  }
  if (lines.length > 0 && lines.at(-1) !== '') lines.push('');
  return lines;
}

export function endLines(reports: readonly AreaReport[], findings: readonly DoctorFinding[], wide: boolean): Line[] {
  return [...legendLines(reports, wide), summaryLine(reports, findings)];
}

function legendLines(reports: readonly AreaReport[], wide: boolean): Line[] {
  const isPartial = (report: AreaReport) =>
    !isChecked(report) && report.seen.length > 0 && (wide || report.findings.length === 0);
  const signs = [
    ...(reports.some(isPartial) ? ['· these checks of the area found nothing'] : []),
    ...(reports.some(({ unseen }) => unseen.length > 0) ? ['? skipped'] : []),
  ];
  return signs.length === 0 ? [] : [[paint('dim', signs.join('   '))]];
}

function summaryLine(reports: readonly AreaReport[], findings: readonly DoctorFinding[]): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const counts = `${countText(errors, 'error')}, ${countText(findings.length - errors, 'warning')}`;
  const skipped = reports.reduce((sum, { unseen }) => sum + new Set(unseen).size, 0);
  const skippedText = skipped === 0 ? '' : `; ${countText(skipped, 'check')} skipped`;
  return `${findings.length === 0 ? 'no problems found' : counts}${skippedText}`;
}
