/** A word below an output that is not shown as the result will show it. */
export function createRemark(text: string): HTMLElement {
  const remark = document.createElement('p');
  remark.className = 'jp-ToJob-remark jp-ToJob-simplified';
  remark.textContent = text;
  return remark;
}
