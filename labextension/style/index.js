import './base.css';
import './dialog.css';
import './panel.css';
