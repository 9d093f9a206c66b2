import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { pathOf } from '../support/parts.ts';

/** Debian's Chromium. Its own sandbox needs permissions that a test in a container rarely has. */
export function openBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox', ...args] });
}

export interface OpenPage {
  readonly page: Page;
  /** Complaints of the browser: script errors, policy violations. */
  readonly complaints: readonly string[];
}

export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', ({ message }) => complaints.push(message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(url);
  // On a narrow screen the list makes room for the selected item, and stays in the document.
  await page.waitForSelector('[role=grid][aria-busy=false]', { state: 'attached' });
  return { page, complaints };
}

/** Opens pages in a browser of the suite. Each test's pages are closed after it. */
export function useBrowser(): (url: string, options?: BrowserContextOptions) => Promise<OpenPage> {
  let browser: Browser | undefined;
  before(async () => {
    browser = await openBrowser();
  });
  afterEach(async () => {
    for (const context of browser?.contexts() ?? []) await context.close();
  });
  after(() => browser?.close());
  return (url, options) => openPage(browser!, url, options);
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Faults that axe finds, one line each: the rule and the first element. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  // Through the debugger, to which the page's own policy does not apply.
  await page.evaluate(axe);
  const found = await page.evaluate(
    `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })`,
  );
  const { violations } = found as { violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] };
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`);
}
