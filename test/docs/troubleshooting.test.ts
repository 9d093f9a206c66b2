import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REJECTIONS } from '../../model/kubelet/provider.ts';
import { DPU_REFUSAL } from '../../model/placement/verdict.ts';
import { root } from '../support/bundles.ts';
import { projectFiles } from '../support/project-files.ts';

const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
/** The sources that refuse nodes, with their texts for kube-scheduler. */
const REFUSING = projectFiles('model/placement/*.ts', 'scheduler-plugin/**/*.ts');
/** Fewer characters of a text with values would be in a page by chance. */
const MIN_FRAGMENT_CHARACTERS = 8;

/** The values of an object literal `const NAME = { … }`, by key. */
function valuesOf(file: string, name: string): Map<string, string> {
  const [, body = ''] = new RegExp(`const ${name}\\b[^=]*= \\{\\n(.*?)\\n\\}`, 's').exec(textOf(file)) ?? [];
  return new Map([...body.matchAll(/^ {2}'?([\w-]+)'?: '([^']+)',$/gm)].map(([, key = '', text = '']) => [key, text]));
}

/** The second argument of each call `refuse('kind', 'text')`, or its longest part without values, by file. */
function refusedTexts(): (readonly [string, string])[] {
  return REFUSING.flatMap((file) =>
    [...textOf(file).matchAll(/\brefuse\(\s*'[\w-]+',\s*(['`])(.+?)\1/g)].map(([, , text = '']) => {
      const parts = text.split(/\$\{[^}]*\}/).map((part) => part.trim());
      return [file, parts.reduce((longest, part) => (part.length > longest.length ? part : longest), '')] as const;
    }),
  );
}

describe('docs/tasks/troubleshooting.md', () => {
  const page = textOf('docs/tasks/troubleshooting.md');
  const section = (title: string) => page.split('\n## ').find((part) => part.startsWith(title)) ?? '';
  const rows = (title: string) =>
    section(title)
      .split('\n')
      .filter((line) => line.startsWith('| '))
      .join('\n');

  it('has a row for each reason for which the extender refuses a node', () => {
    const texts = valuesOf('model/placement/refusal.ts', 'TEXTS');
    assert.ok(texts.size >= 17, `${texts.size}`);
    const pending = rows('A VM stays Pending');
    assert.equal([...texts].filter(([, text]) => !pending.includes(`\`${text}`)).join(), '');
  });

  it('has a row for each other text with which a node is refused', () => {
    const texts = refusedTexts().filter(([, text]) => text.length >= MIN_FRAGMENT_CHARACTERS);
    assert.ok(texts.length >= 10, texts.join('\n'));
    const pending = rows('A VM stays Pending');
    assert.ok(pending.includes(DPU_REFUSAL));
    assert.equal(texts.filter(([, text]) => !pending.includes(text)).join(), '');
  });

  it('has a row for each reason with which a kubelet rejects a pod', () => {
    const rejected = rows('The kubelet rejected the launcher');
    const [, admission = ''] =
      /ADMISSION =\s+\/\^\(\?:(.+)\)\$\//.exec(textOf('scheduler-plugin/cluster/pod-view.ts')) ?? [];
    const reasons = new Set([...REJECTIONS, ...admission.split('|').map((reason) => reason.replace(/\[.*$/, ''))]);
    assert.ok(reasons.has('NodeShutdown') && reasons.has('OutOf') && reasons.size >= 5, [...reasons].join());
    assert.equal([...reasons].filter((reason) => !rejected.includes(`\`${reason}`)).join(), '');
  });
});
