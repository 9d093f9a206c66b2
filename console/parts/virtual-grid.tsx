// biome-ignore-all lint/a11y/useSemanticElements: rows of a table cannot be placed one by one; a grid of roles is what ARIA has for it
import { computed, signal } from '@preact/signals';
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { route } from '../state/route.ts';
import { ready } from '../state/state.ts';

function matches(query: string) {
  const media = matchMedia(query);
  const result = signal(media.matches);
  media.addEventListener('change', (event) => {
    result.value = event.matches;
  });
  return result;
}

const isNarrow = matches('(width <= 900px)');
const isWide = matches('(width > 1500px)');

/** How much room a list has: `compact` shows an entry as a card with its state, `wide` has large CPU maps. */
export const layout = computed((): 'compact' | 'usual' | 'wide' => {
  const hasDetail = route.value.chosen !== undefined;
  if (isNarrow.value || (hasDetail && !isWide.value)) return 'compact';
  return isWide.value && !hasDetail ? 'wide' : 'usual';
});

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly onSort?: () => void;
  readonly sorted?: 'ascending' | 'descending';
}

interface VirtualGridProps<Item> {
  readonly label: string;
  readonly columns: readonly Column[];
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => string;
  readonly cells: (item: Item) => readonly ComponentChildren[];
  readonly isChosen: (item: Item) => boolean;
  readonly onChoose: (item: Item) => void;
  readonly empty: ComponentChildren;
}

/** Of every row: equal heights give the position of rows that are not rendered. A card has two or three lines. */
const ROW_HEIGHT_PIXELS = 58;
const CARD_HEIGHT_PIXELS = 104;

/** Number of rows to render above and below the visible ones, so that scrolling finds them ready. */
const SPARE_ROWS = 4;

/** Renders its visible rows only. One stop of Tab; arrows, Page Up/Down, Home, End move, Enter selects. */
export function VirtualGrid<Item>(props: VirtualGridProps<Item>) {
  const { label, columns, items, keyOf, cells, isChosen, onChoose, empty } = props;
  const rowHeight = layout.value === 'compact' ? CARD_HEIGHT_PIXELS : ROW_HEIGHT_PIXELS;
  const count = items.length;
  const chosen = items.findIndex(isChosen);
  const id = useId();
  const grid = useRef<HTMLDivElement>(null);
  const view = useVisiblePart(grid);
  const [at, setAt] = useState(0);
  const active = Math.min(at, count - 1);
  const activeItem = items[active];
  useEffect(() => {
    if (chosen >= 0) setAt(chosen);
  }, [chosen]);

  const moveTo = (to: number) => {
    const index = Math.max(0, Math.min(count - 1, to));
    setAt(index);
    if (grid.current !== null) scrollToRow(grid.current, index, rowHeight);
  };
  const onKeyDown = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    const isChoice = event.key === 'Enter' || event.key === ' ';
    const to = targetOf(event.key, active, { count, page: Math.max(1, Math.floor(view.height / rowHeight) - 2) });
    if (!isChoice && to === undefined) return;
    event.preventDefault();
    if (to !== undefined) moveTo(to);
    else if (activeItem) onChoose(activeItem);
  };

  return (
    <div
      ref={grid}
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      aria-busy={!ready.value}
      aria-activedescendant={activeItem && `${id}-${keyOf(activeItem)}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <Head columns={columns} />
      <div role="rowgroup" class="grid-body" style={{ height: `${count * rowHeight}px` }}>
        {renderedRows(view, { count, active, rowHeight }).map((index) => {
          const item = items[index]!;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the grid itself takes the keys
            <div
              key={keyOf(item)}
              id={`${id}-${keyOf(item)}`}
              role="row"
              class={index === active ? 'row is-active' : 'row'}
              tabIndex={-1}
              aria-rowindex={index + 2}
              aria-selected={index === chosen}
              style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
              onClick={() => {
                setAt(index);
                onChoose(item);
              }}
            >
              {cells(item).map((content, column) => (
                <div
                  key={columns[column]?.key}
                  role="gridcell"
                  class={`cell cell-${columns[column]?.key}`}
                  tabIndex={-1}
                >
                  {content}
                </div>
              ))}
            </div>
          );
        })}
        {count === 0 && (
          <div role="row" class="row is-empty" tabIndex={-1}>
            <div role="gridcell" class="cell" tabIndex={-1}>
              {ready.value ? empty : 'Loading …'}
            </div>
          </div>
        )}
      </div>
    </div>
  );
}

/** The scroll position and the height of an element, in pixels, at its last change. */
function useVisiblePart(element: { readonly current: HTMLElement | null }) {
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const measure = () => setView({ top: current.scrollTop, height: current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    current.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener('scroll', measure);
    };
  }, []);
  return view;
}

function renderedRows(
  view: ReturnType<typeof useVisiblePart>,
  rows: Readonly<Record<'count' | 'active' | 'rowHeight', number>>,
) {
  const { count, active, rowHeight } = rows;
  const first = Math.max(0, Math.floor(view.top / rowHeight) - SPARE_ROWS);
  const last = Math.min(count, Math.ceil((view.top + view.height) / rowHeight) + SPARE_ROWS);
  const indexes = Array.from({ length: Math.max(0, last - first) }, (_, k) => first + k);
  // Screen readers need the active row, wherever the list was scrolled to.
  if (active >= 0 && (active < first || active >= last)) indexes.push(active);
  return indexes;
}

function targetOf(key: string, active: number, rows: { readonly count: number; readonly page: number }) {
  const targets = new Map([
    ['ArrowDown', active + 1],
    ['ArrowUp', active - 1],
    ['PageDown', active + rows.page],
    ['PageUp', active - rows.page],
    ['Home', 0],
    ['End', rows.count - 1],
  ]);
  return targets.get(key);
}

function scrollToRow(element: HTMLElement, index: number, rowHeight: number): void {
  const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
  const head = element.querySelector<HTMLElement>('.grid-head')?.offsetHeight ?? 0;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (bottom > element.scrollTop + element.clientHeight - head) {
    element.scrollTop = bottom - element.clientHeight + head;
  }
}

const SORT_MARKS = { ascending: '↑', descending: '↓' } as const;

function Head({ columns }: { readonly columns: readonly Column[] }) {
  return (
    <div role="rowgroup" class="grid-head">
      <div role="row" class="row" aria-rowindex={1} tabIndex={-1}>
        {columns.map(({ key, title, onSort, sorted }) => (
          <div key={key} role="columnheader" class={`cell cell-${key}`} aria-sort={sorted} tabIndex={-1}>
            {onSort ? (
              <button type="button" onClick={onSort}>
                {title}
                <span class="sort-mark" aria-hidden="true">
                  {sorted === undefined ? '↕' : SORT_MARKS[sorted]}
                </span>
              </button>
            ) : (
              title
            )}
          </div>
        ))}
      </div>
    </div>
  );
}
