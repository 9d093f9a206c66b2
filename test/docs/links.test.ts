import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from '../support/bundles.ts';

const markdown = (folder: string, recursive = false) =>
  readdirSync(join(root, folder), { recursive, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));

const PAGES = [...markdown('.'), ...markdown('docs', true), ...markdown('manifests', true), ...markdown('packaging')];

/** What the headings of a page can be linked by. Source: GitHub's anchors. */
function anchorsOf(path: string): string[] {
  const text = readFileSync(path, 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}

/** Links of a page into the repository that lead nowhere. */
function deadLinks(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '');
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? join(root, page) : join(root, dirname(page), path);
    if (!existsSync(file)) return true;
    return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor);
  });
}

describe('links within the documentation', () => {
  it('lead somewhere', () => {
    assert.ok(PAGES.length > 60);
    const dead = PAGES.flatMap((page) => deadLinks(page).map((target) => `${page}: ${target}`));
    assert.deepEqual(dead, []);
  });

  it('the root’s pages that a newcomer looks for are there', () => {
    const pages = ['CODE_OF_CONDUCT', 'CONTRIBUTING', 'GOVERNANCE', 'MAINTAINERS', 'ROADMAP', 'SECURITY'];
    for (const page of pages) assert.ok(PAGES.includes(relative(root, join(root, `${page}.md`))), page);
  });
});
