import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { needs } from '../support/parts.ts';
import { accessibilityFaults, useBrowser } from './browser-stage.ts';
import { type ConsoleUnderTest, consoleOf } from './fixture.ts';
import { dressed, SWITCH_NODE, WITH_DPU } from './scene-fixture.ts';

/** Names of the rows whose cells do not fit into them. */
const CUT_ROWS = `[...document.querySelectorAll('.grid-body .row')]
  .filter((row) => [...row.children].some((cell) => cell.scrollHeight > row.clientHeight))
  .map((row) => row.textContent)`;

const rows = (page: Page) => page.locator('.grid-body .row .name:not(.is-plain)').allTextContents();

describe('running VMs and their history in Chromium', function () {
  needs('chromium');
  this.timeout(300_000);
  const open = useBrowser();
  let under: ConsoleUnderTest;
  before(async () => {
    under = await dressed(consoleOf);
  });
  after(() => under?.stop());

  it('are listed with the verdict of the table of states, those that need attention first', async () => {
    const { page, complaints } = await open(`${under.url}/#/vms`);
    const first = page.locator('.grid-body .row').first();
    const broken = /Broken: DPUNotReady[\s\S]*whose DPU is not ready: dead, last renewal 61 s ago/;
    assert.match(await first.innerText(), broken);
    const tab = await page.locator('.tabs a[aria-current=page] .count').first().innerText();
    const count = Number(/\d+$/.exec(tab)?.[0]);
    assert.equal(Number(await page.getByRole('grid').getAttribute('aria-rowcount')), count + 1);
    await page.getByLabel('Which VMs').selectOption('attention');
    const attention = await rows(page);
    assert.ok(attention.length > 0 && attention.length < count);
    assert.deepEqual(complaints, []);
  });

  it('list a paused guest as paused, after those that need attention', async () => {
    const { page } = await open(`${under.url}/#/vms`);
    await page.getByRole('searchbox', { name: 'Search VMs' }).fill('Paused');
    const row = page.locator('.grid-body .row');
    await page.locator('.badge', { hasText: 'Stopped: Paused' }).first().waitFor();
    assert.equal(await row.count(), 1);
    assert.match(await row.first().innerText(), /does not run: PausedByUser/);
    await row.first().click();
    await page.locator('.detail .badge', { hasText: 'Stopped: Paused' }).waitFor();
  });

  it('have links with search, filter, order and selection', async () => {
    const { page } = await open(`${under.url}/#/vms`);
    await page.getByRole('searchbox', { name: 'Search VMs' }).fill('worker-1');
    await page.getByRole('button', { name: 'CPUs' }).click();
    await page.locator('.grid-body .row').first().click();
    await page.locator('.detail h2').waitFor();
    const [address, seen, title] = [page.url(), await rows(page), await page.locator('.detail h2').innerText()];
    assert.match(address, /#\/vms\/\w+\/[\w-]+\?q=worker-1&sort=-cpus$/);
    const other = await open(address);
    assert.deepEqual(await rows(other.page), seen);
    assert.equal(await other.page.locator('.detail h2').innerText(), title);
    // Typing adds no step for Back, which returns to where the VM was selected.
    await page.goBack();
    await page.locator('.detail').waitFor({ state: 'detached' });
  });

  it('show a VM: its state, its place and its history, with times in the time zone of the browser', async () => {
    const { page } = await open(`${under.url}/#/nodes/${WITH_DPU}`, { timezoneId: 'Asia/Kolkata' });
    const dpu = page.getByRole('region', { name: 'DPU' });
    await dpu.waitFor();
    const since = 'since 2026-05-04 17:30:00 \\+05:30 \\([^)]+\\): dead, last renewal 61 s ago';
    assert.match(await dpu.innerText(), new RegExp(`DPU not ready ${since}`));
    await dpu.getByRole('link').first().click();
    await page.locator('.detail .badge', { hasText: 'Broken: DPUNotReady' }).waitFor();
    const history = page.locator('.history .entries li');
    await history.first().waitFor();
    assert.match(await history.first().innerText(), /2026-05-04 15:31:00 \+05:30[\s\S]*PaddedToWholeCores/);
    await page.locator('.detail .state a').click();
    await page.getByRole('heading', { name: WITH_DPU }).waitFor();
  });

  it('show a node: the threads of the switch and its history', async () => {
    const { page } = await open(`${under.url}/#/nodes/${SWITCH_NODE}`);
    const section = page.locator('.switch');
    await section.locator('tbody tr').first().waitFor();
    const text = await section.innerText();
    assert.match(text, /restricts ordinary threads to CPUs 13,30-31\. The CPUs where they may run now/);
    assert.match(text, /11 × handler\s+ovs-vswitchd, pid 812\s+13,30-31\s+as configured/);
    assert.match(text, /1 × pmd-c01\/id:8[\s\S]*poll mode driver, left alone/);
    assert.equal(await page.locator('.thread.has-switch').count(), 3);
    assert.match(await page.locator('.history').innerText(), /OVSThreadsMoved/);
  });

  it('advise what to do if a list is empty', async () => {
    const { page } = await open(`${under.url}/#/vms?q=nothing-is-called-so`);
    await page.getByText('No VM matches. Clear the search').waitFor();
  });

  for (const width of [390, 1280, 1920]) {
    for (const hash of ['#/vms', `#/nodes/${WITH_DPU}`, '#/vms?filter=attention']) {
      it(`${hash} at ${width} px: has no fault of axe, nothing is wider than the screen, and no row is cut`, async () => {
        const colorScheme = width === 1280 ? 'dark' : 'light';
        const { page } = await open(`${under.url}/${hash}`, { viewport: { width, height: 900 }, colorScheme });
        if (hash.includes('nodes')) await page.locator('.cpu-cell').first().waitFor();
        assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth')) <= width);
        assert.deepEqual(await page.evaluate(CUT_ROWS), []);
        assert.deepEqual(await accessibilityFaults(page), []);
      });
    }
  }
});
