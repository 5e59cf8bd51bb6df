/** What the Layout model of a widget says about its place, as styles of its node. */
import type { JSONObject } from '@lumino/coreutils';

/**
 * The values of a Layout that count. Where a widget stands is left to the box around it, so that
 * nothing is shown over something else.
 */
const NAMES = [
  'align_content',
  'align_items',
  'align_self',
  'border_bottom',
  'border_left',
  'border_right',
  'border_top',
  'display',
  'flex',
  'flex_flow',
  'grid_area',
  'grid_auto_columns',
  'grid_auto_flow',
  'grid_auto_rows',
  'grid_column',
  'grid_gap',
  'grid_row',
  'grid_template_areas',
  'grid_template_columns',
  'grid_template_rows',
  'height',
  'justify_content',
  'justify_items',
  'margin',
  'max_height',
  'max_width',
  'min_height',
  'min_width',
  'object_fit',
  'order',
  'overflow',
  'padding',
  'visibility',
  'width'
];

/** Set the styles of a node as a Layout has them. */
export function applyLayout(
  { style }: HTMLElement,
  layout: JSONObject | undefined
): void {
  for (const name of NAMES) {
    const value = layout?.[name];
    const property = name.replace(/_/g, '-');
    style.removeProperty(property);
    // None of these properties loads anything, and one value cannot set another property.
    if (typeof value === 'string' && !value.includes('(')) {
      style.setProperty(property, value);
    }
  }
}
